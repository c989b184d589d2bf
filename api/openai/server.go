package openai

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Server is the front door.
type Server struct {
	cfg      Config
	node     Node
	handler  http.Handler
	live     atomic.Int64
	draining atomic.Bool

	mu        sync.Mutex // guards templates
	templates []cachedTemplate
}

// New makes a front door onto a node.
func New(cfg Config, node Node) *Server {
	cfg.fill()
	s := &Server{cfg: cfg, node: node}
	mux := http.NewServeMux()
	for path, methods := range map[string]map[string]http.HandlerFunc{
		"/v1/chat/completions": {"POST": s.bounded(s.chat)},
		"/v1/completions":      {"POST": s.bounded(s.completions)},
		"/v1/embeddings":       {"POST": s.bounded(s.embeddings)},
		"/tokenize":            {"POST": s.bounded(s.tokenize)},
		"/detokenize":          {"POST": s.bounded(s.detokenize)},
		"/v1/models":           {"GET": s.listModels},
		"/v1/models/{id...}":   {"GET": s.oneModel},
		"/health":              {"GET": s.health},
		"/ping":                {"GET": s.health, "POST": s.health},
		"/version":             {"GET": s.version},
		"/metrics":             {"GET": s.metrics},
		"/":                    {},
	} {
		mux.HandleFunc(path, byMethod(path, methods))
	}
	s.handler = s.guard(mux)
	return s
}

// Handler serves all routes.
func (s *Server) Handler() http.Handler { return s.handler }

// HTTPServer is a server for Handler with time-outs and limits set. There is
// no limit on writing: streams last as long as they need, and each write has
// its own deadline.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
}

// SetDraining makes the door refuse new work with 503 and report it in
// /health. Requests inside go on.
func (s *Server) SetDraining(on bool) { s.draining.Store(on) }

// byMethod answers a wrong method with 405 and unknown paths with 404.
func byMethod(path string, methods map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := methods[r.Method]
		if h == nil && r.Method == http.MethodHead {
			h = methods[http.MethodGet]
		}
		switch {
		case h != nil:
			h(w, r)
		case path == "/":
			fault(http.StatusNotFound, "invalid_request_error", "unknown_url", "there is nothing at %s %s", r.Method, r.URL.Path).write(w)
		default:
			for m := range methods {
				w.Header().Add("Allow", m)
			}
			fault(http.StatusMethodNotAllowed, "invalid_request_error", "method_not_allowed", "%s is not a method of %s", r.Method, r.URL.Path).write(w)
		}
	}
}

// bounded wraps a route that does work: it limits how many run at once, reads
// the body and answers errors.
func (s *Server) bounded(do func(w http.ResponseWriter, r *http.Request, f *fields) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := s.enter(w, r, do)
		if err == nil {
			return
		}
		e := asAPI(err)
		if errors.Is(err, errGone) || r.Context().Err() != nil && e.Status >= http.StatusInternalServerError {
			// net/http ends the context of a client that only closed its
			// sending side too. It may be listening: what it sees must not
			// look like an answer, or like a fault of the node.
			panic(http.ErrAbortHandler)
		}
		s.logFault(r, e)
		e.write(w)
	}
}

func (s *Server) enter(w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter, *http.Request, *fields) error) error {
	if s.draining.Load() {
		e := fault(http.StatusServiceUnavailable, "service_unavailable_error", "draining", "the node is shutting down; ask another one")
		e.RetryAfter = retrySoon
		return e
	}
	if s.live.Add(1) > int64(s.cfg.MaxRequests) {
		s.live.Add(-1)
		e := fault(http.StatusTooManyRequests, "rate_limit_error", "too_many_requests", "%d requests are being served; try again", s.cfg.MaxRequests)
		e.RetryAfter = retrySoon
		return e
	}
	defer s.live.Add(-1)
	if e := checkMedia(r); e != nil {
		return e
	}
	if e := checkCoding(r); e != nil {
		w.Header().Set("Accept-Encoding", "identity")
		return e
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	f, err := parseFields(body)
	if err != nil {
		return err
	}
	return do(w, r, f)
}

// readBody reads the whole body within its limits of size and time.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, fault(http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large",
			"the body is longer than %d bytes", int64(MaxBodyBytes))
	case err != nil:
		e := fault(http.StatusBadRequest, "invalid_request_error", "", "the body could not be read: %v", err)
		if r.ContentLength > 0 {
			e.Message += " (Content-Length is " + strconv.FormatInt(r.ContentLength, 10) + ")"
		}
		return nil, e
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // writers of tests have none
	return body, nil
}

// logFault logs what failed on this side.
func (s *Server) logFault(r *http.Request, e *apiError) {
	if e.Status >= http.StatusInternalServerError && e.Code != "draining" && e.Code != "model_loading" {
		s.cfg.Log.Error("request failed", "path", r.URL.Path, "id", r.Header.Get("X-Request-Id"), "status", e.Status, "err", e.Message)
	}
}

// newID is a fresh id of 32 hexadecimal digits.
func (s *Server) newID() string {
	b := make([]byte, 0, 32)
	for range 2 {
		h := strconv.FormatUint(s.cfg.Random(), 16)
		for range 16 - len(h) {
			b = append(b, '0')
		}
		b = append(b, h...)
	}
	return string(b)
}

// writeJSON sends a whole answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a client that is gone can't be told
}
