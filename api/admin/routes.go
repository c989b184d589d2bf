package admin

import (
	"fmt"
	"net/http"
	"strings"

	"ieg"
)

// routes is the whole surface of the door.
func (s *Server) routes() []route {
	rts := []route{
		{"GET /v1/status", read, s.status},
		{"GET /v1/requests", read, s.requests},
		{"GET /v1/explain/{id}", read, s.explain},
		{"GET /v1/deaths", read, s.deaths},
		{"GET /v1/devices", read, s.devices},
		{"GET /v1/config", read, s.config},
		{"GET /v1/version", read, s.version},
		{"GET /v1/models", read, s.models},
		{"POST /v1/models/load", write, s.load},
		{"POST /v1/models/unload", write, s.unload},
		{"POST /v1/drain", write, s.drain},
	}
	if s.node.Recorder != nil {
		rts = append(rts,
			route{"GET /v1/recorder", read, s.segments},
			route{"GET /v1/recorder/{name}", read, s.segment})
	}
	if s.node.KV != nil {
		rts = append(rts, s.kvRoutes()...)
	}
	return rts
}

func (s *Server) status(*http.Request) (any, error) { return s.node.Observer.Status(), nil }

func (s *Server) requests(*http.Request) (any, error) {
	rows := s.node.Observer.Status().Requests
	if rows == nil {
		rows = []ieg.RequestRow{}
	}
	return rows, nil
}

func (s *Server) explain(r *http.Request) (any, error) {
	id, err := pathName(r, "id")
	if err != nil {
		return nil, err
	}
	return s.node.Observer.Explain(id)
}

func (s *Server) deaths(*http.Request) (any, error) {
	return list(s.node.Observer.Deaths()), nil
}

func (s *Server) devices(*http.Request) (any, error) { return list(s.node.Host.Devices()), nil }
func (s *Server) config(*http.Request) (any, error)  { return s.node.Host.Config(), nil }
func (s *Server) version(*http.Request) (any, error) { return s.node.Host.Version(), nil }
func (s *Server) models(*http.Request) (any, error)  { return list(s.node.Models.Models()), nil }

// list makes an empty list print as [], not null.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func (s *Server) load(r *http.Request) (any, error) {
	m, err := decode[LoadModel](r)
	if err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return s.node.Models.LoadModel(r.Context(), m)
}

// Validate checks what can be checked without the node.
func (m LoadModel) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case m.Path == "":
		return bad("path: name a GGUF file")
	case strings.ContainsRune(m.Path, 0):
		return bad("path: contains a zero byte")
	case len(m.Name) > NameBytesMax:
		return bad("name: %d bytes, %d fit", len(m.Name), NameBytesMax)
	case len(m.Aliases) > AliasesMax:
		return bad("aliases: %d, %d fit", len(m.Aliases), AliasesMax)
	case m.Context < 0 || m.Slots < 0 || m.Threads < 0:
		return bad("ctx, slots and threads can't be negative")
	}
	for _, a := range m.Aliases {
		if a == "" || len(a) > NameBytesMax {
			return bad("aliases: each has 1 to %d bytes", NameBytesMax)
		}
	}
	return nil
}

func (s *Server) unload(r *http.Request) (any, error) {
	u, err := decode[UnloadModel](r)
	if err != nil {
		return nil, err
	}
	if u.Name == "" || len(u.Name) > NameBytesMax {
		return nil, fmt.Errorf("%w: name: 1 to %d bytes", ErrInvalid, NameBytesMax)
	}
	return struct{}{}, s.node.Models.UnloadModel(r.Context(), u)
}

func (s *Server) drain(r *http.Request) (any, error) {
	d, err := decode[Drain](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.node.Drainer.Drain(d)
}

func (s *Server) segments(*http.Request) (any, error) {
	segs, err := s.node.Recorder.Segments()
	return list(segs), err
}

func (s *Server) segment(r *http.Request) (any, error) {
	name, err := pathName(r, "name")
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%w: no segment %q", ErrNotFound, name)
	}
	redact := r.URL.Query().Get("redact") == "1"
	if granted(r.Context(), s.gid)&content == 0 && !redact {
		return nil, fmt.Errorf("%w: segments hold token ids of users; members of the group get them redacted only (--redact)", ErrPermission)
	}
	body, err := s.node.Recorder.OpenSegment(name, redact)
	if err != nil {
		return nil, err
	}
	return stream{body}, nil
}
