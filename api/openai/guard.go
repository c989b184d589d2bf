package openai

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// guard lets a request in, or answers it.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := clientID(r.Header.Get("X-Request-Id"))
		if id == "" {
			id = s.newID()
		}
		r.Header.Set("X-Request-Id", id)
		w.Header().Set("X-Request-Id", id)
		pw := &patientWriter{ResponseWriter: w, rc: http.NewResponseController(w), stall: s.cfg.WriteStall}
		w = pw
		// Whatever is answered, the body comes in time: the server reads the
		// rest of one that was not wanted. readBody lifts the deadline.
		_ = pw.rc.SetReadDeadline(time.Now().Add(bodyTimeout))
		defer s.recover(pw, r)
		if e := s.admitPeer(w, r); e != nil {
			e.write(w)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id, X-Vllm-Priority")
			w.Header().Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if e := s.checkKey(r); e != nil {
			e.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// patientWriter gives each write its own deadline, so that a client may take
// as long as it likes for a stream, but not for a part of it.
type patientWriter struct {
	http.ResponseWriter
	rc      *http.ResponseController
	stall   time.Duration
	started bool
	// due is when the write under way is late, in Unix nanoseconds; 0: none.
	due atomic.Int64
}

func (w *patientWriter) WriteHeader(status int) {
	w.started = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *patientWriter) Write(b []byte) (int, error) {
	w.started = true
	due := time.Now().Add(w.stall)
	_ = w.rc.SetWriteDeadline(due) // writers of tests have none
	w.due.Store(due.UnixNano())
	return w.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController: what was written leaves now.
func (w *patientWriter) FlushError() error {
	err := w.rc.Flush()
	if err == nil {
		w.due.Store(0)
	}
	return err
}

// stalled tells that the client has not taken a write in time: net/http ends
// the request's context then as if the client had left.
func (w *patientWriter) stalled() bool {
	due := w.due.Load()
	return due != 0 && time.Now().UnixNano() >= due
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recover keeps one request's fault from being the node's.
func (s *Server) recover(w *patientWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Log.Error("request failed", "path", r.URL.Path, "id", r.Header.Get("X-Request-Id"), "panic", p, "stack", string(debug.Stack()))
	if w.started {
		panic(http.ErrAbortHandler) // a torn answer must not look whole
	}
	fault(http.StatusInternalServerError, "internal_server_error", "internal_error", "the front door failed on this request").write(w)
}

// admitPeer checks Host and Origin.
func (s *Server) admitPeer(w http.ResponseWriter, r *http.Request) *apiError {
	host := hostName(r.Host)
	restricted := s.cfg.Loopback || len(s.cfg.AllowedHosts) > 0
	if restricted && !(s.cfg.Loopback && isLoopback(host)) && !slices.Contains(s.cfg.AllowedHosts, host) {
		return fault(http.StatusForbidden, "permission_error", "host_not_allowed",
			"Host %q is not served here; use 127.0.0.1 or localhost, or add the name to the allowed hosts", host)
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	w.Header().Add("Vary", "Origin")
	if !s.allowOrigin(origin) {
		return fault(http.StatusForbidden, "permission_error", "origin_not_allowed",
			"Origin %q may not use this node; add it to the allowed origins", origin)
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	return nil
}

func (s *Server) allowOrigin(origin string) bool {
	if slices.Contains(s.cfg.AllowedOrigins, "*") || slices.Contains(s.cfg.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && s.cfg.Loopback && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Hostname())
}

func hostName(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// open are the routes that need no key.
var open = []string{"/health", "/ping", "/version", "/metrics"}

func (s *Server) checkKey(r *http.Request) *apiError {
	if s.cfg.Keys.Len() == 0 || slices.Contains(open, r.URL.Path) {
		return nil
	}
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return fault(http.StatusUnauthorized, "authentication_error", "invalid_api_key",
			"an API key is needed; send it as Authorization: Bearer KEY")
	case !s.cfg.Keys.allow(strings.TrimSpace(key)):
		return fault(http.StatusUnauthorized, "authentication_error", "invalid_api_key", "this API key is not known here")
	}
	return nil
}

// checkMedia refuses bodies that say they are something else than JSON. The
// form type is what "curl -d" says of any body: it passes where no browser can
// be behind it.
func checkMedia(r *http.Request) *apiError {
	ct := r.Header.Get("Content-Type")
	if ct == "" || ct == "application/x-www-form-urlencoded" && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Mode") == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return fault(http.StatusUnsupportedMediaType, "invalid_request_error", "unsupported_media_type",
		"the body must be JSON: send Content-Type: application/json, not %q", ct)
}

// checkCoding refuses compressed bodies.
func checkCoding(r *http.Request) *apiError {
	for _, line := range r.Header["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return fault(http.StatusUnsupportedMediaType, "invalid_request_error", "unsupported_content_encoding",
					"the body must come as it is: send it without Content-Encoding, not as %q", utf8Bound(coding, 64))
			}
		}
	}
	return nil
}

// clientID is an id from a client if it is fit to be echoed, else "".
func clientID(id string) string {
	if len(id) > MaxIDBytes {
		return ""
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' {
			return ""
		}
	}
	return id
}
