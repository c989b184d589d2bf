package openai

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"ieg"
)

// apiError is an error as the client sees it.
type apiError struct {
	Status  int
	Type    string
	Code    string // "" is null
	Param   string // "" is null
	Message string
	// RetryAfter adds the header of that name.
	RetryAfter time.Duration
	// Loading adds a "loading" object.
	Loading *loadingBody
	// cause is logged, not shown.
	cause error
}

type loadingBody struct {
	Model    string  `json:"model"`
	Progress float64 `json:"progress"`
}

func (e *apiError) Error() string { return e.Message }
func (e *apiError) Unwrap() error { return e.cause }

// errGone ends a response whose client takes no more of it.
var errGone = errors.New("the client went away")

// bad is a 400 about a field.
func bad(param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported is a 400 about a field whose meaning this node doesn't offer.
func unsupported(param, format string, args ...any) *apiError {
	e := bad(param, format, args...)
	e.Code = "unsupported"
	return e
}

func fault(status int, kind, code, format string, args ...any) *apiError {
	return &apiError{Status: status, Type: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// retrySoon is what is suggested when nobody knows better.
const retrySoon = time.Second

// identities maps errors of the node to what the client sees; the first that
// matches counts.
var identities = []struct {
	err        error
	status     int
	kind, code string
	retry      time.Duration
}{
	{ieg.ErrBusy, http.StatusTooManyRequests, "rate_limit_error", "queue_full", retrySoon},
	{ieg.ErrDraining, http.StatusServiceUnavailable, "service_unavailable_error", "draining", retrySoon},
	{ieg.ErrNoModel, http.StatusNotFound, "invalid_request_error", "model_not_found", 0},
	{ieg.ErrContextLength, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", 0},
	{ieg.ErrEngineLost, http.StatusServiceUnavailable, "service_unavailable_error", "engine_lost", retrySoon},
	{ieg.ErrOutOfMemory, http.StatusServiceUnavailable, "service_unavailable_error", "out_of_memory", retrySoon},
	{ieg.ErrDeadline, http.StatusGatewayTimeout, "timeout_error", "deadline_exceeded", 0},
	{ieg.ErrCancelled, http.StatusServiceUnavailable, "service_unavailable_error", "cancelled", 0},
	{ieg.ErrUnsupported, http.StatusBadRequest, "invalid_request_error", "unsupported", 0},
}

// asAPI turns an error of the node into the client's.
func asAPI(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	for _, id := range identities {
		if errors.Is(err, id.err) {
			return &apiError{Status: id.status, Type: id.kind, Code: id.code, Message: err.Error(), RetryAfter: id.retry, cause: err}
		}
	}
	return &apiError{Status: http.StatusInternalServerError, Type: "internal_server_error", Code: "internal_error", Message: "the node failed: " + err.Error(), cause: err}
}

// failed turns the end of a request that is no success into an error.
func failed(f *ieg.Finish) *apiError {
	err := f.Err
	if err == nil {
		switch f.Reason {
		case ieg.StopCancel:
			err = ieg.ErrCancelled
		case ieg.StopDeadline:
			err = fmt.Errorf("%w before the output was complete", ieg.ErrDeadline)
		case ieg.StopLimit:
			return fault(http.StatusUnprocessableEntity, "invalid_request_error", "limit_reached", "a limit of the request's graph was reached")
		default:
			err = errors.New("no reason given")
		}
	}
	e := *asAPI(err)
	if f.Reason == ieg.StopLimit && e.Status >= 500 {
		e.Status, e.Type, e.Code = http.StatusUnprocessableEntity, "invalid_request_error", "limit_reached"
	}
	if f.RetryAfter > 0 {
		e.RetryAfter = f.RetryAfter
	}
	return &e
}

// append writes the error's JSON object.
func (e *apiError) append(b []byte) []byte {
	b = append(b, `{"error":{"message":`...)
	b = appendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"param":`...)
	b = appendNullable(b, e.Param)
	b = append(b, `,"code":`...)
	b = appendNullable(b, e.Code)
	b = append(b, '}')
	if e.Loading != nil {
		b = append(b, `,"loading":{"model":`...)
		b = appendString(b, e.Loading.Model)
		b = append(b, `,"progress":`...)
		b = strconv.AppendFloat(b, e.Loading.Progress, 'f', 3, 64)
		b = append(b, '}')
	}
	return append(b, '}')
}

// write sends the error as a whole response.
func (e *apiError) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="ieg"`)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(e.append(nil), '\n')) // a client that is gone can't be told
}
