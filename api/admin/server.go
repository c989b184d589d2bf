package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// hostName is the Host that the client sends.
const hostName = "ieg"

// Node is everything that the door asks of a node. Recorder and KV may be nil.
type Node struct {
	Observer Observer
	Host     Host
	Models   Models
	Recorder Recorder
	Drainer  Drainer
	KV       KV
}

// Server serves the admin routes.
type Server struct {
	node Node
	gid  int
	http *http.Server
}

// NewServer makes a server for the node. group is the name or number of the
// group whose members may connect, "" for none.
func NewServer(node Node, group string) (*Server, error) {
	if node.Observer == nil || node.Host == nil || node.Models == nil || node.Drainer == nil {
		return nil, errors.New("admin: the node lacks an observer, a host, models or a drainer")
	}
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	s := &Server{node: node, gid: gid}
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.pattern, s.guard(r))
	}
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: HeaderTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    HeaderBytesMax,
		ConnContext:       withPeer,
		ConnState:         followState,
	}
	return s, nil
}

// Serve answers on l until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(newLimited(l, ConnectionsMax))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops listening and waits for answers on their way.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	return errors.Join(err, s.http.Close())
}

// route is one line of the table: what a request asks, what it needs, and how
// it is answered. An answer is any value that becomes JSON, or a stream.
type route struct {
	pattern string
	need    permission
	answer  func(r *http.Request) (any, error)
}

// stream is an answer that is no JSON.
type stream struct{ body io.ReadCloser }

func (s *Server) guard(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromBrowser(r) {
			fail(w, fmt.Errorf("%w: the request looks like a browser's", ErrPermission))
			return
		}
		if have := granted(r.Context(), s.gid); have&rt.need != rt.need {
			fail(w, fmt.Errorf("%w: the node belongs to another user; ask its owner, or join the admin group", ErrPermission))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, RequestBytesMax)
		v, err := rt.answer(r)
		if err != nil {
			fail(w, err)
			return
		}
		if st, ok := v.(stream); ok {
			defer st.body.Close()
			w.Header().Set("Content-Type", "application/octet-stream")
			// A broken pipe here is the client's going; it has seen less than
			// the promised length or an unfinished chunk.
			_, _ = io.Copy(w, st.body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	})
}

func fail(w http.ResponseWriter, err error) {
	code, status := codeOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Error{Code: code, Message: err.Error()})
}

// decode reads a JSON body strictly: one object, no unknown key.
func decode[T any](r *http.Request) (T, error) {
	var v T
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
			return v, fmt.Errorf("%w: %s can't be of type %s", ErrInvalid, cmp.Or(t.Field, "the body"), t.Value)
		}
		return v, fmt.Errorf("%w: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%w: more follows after the object", ErrInvalid)
	}
	return v, nil
}

func pathName(r *http.Request, key string) (string, error) {
	name := r.PathValue(key)
	if name == "" || len(name) > NameBytesMax {
		return "", fmt.Errorf("%w: a name has 1 to %d bytes", ErrInvalid, NameBytesMax)
	}
	return name, nil
}
