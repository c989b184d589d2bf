package openai

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type modelBody struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	Root        string   `json:"root"`
	Parent      *string  `json:"parent"`
	MaxModelLen int32    `json:"max_model_len"`
	Permission  []string `json:"permission"`
}

func describe(m *Model, id string) modelBody {
	return modelBody{ID: id, Object: "model", Created: m.Created, OwnedBy: "ieg", Root: m.Name, MaxModelLen: m.Context, Permission: []string{}}
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	list := []modelBody{}
	models := s.node.Models()
	for i := range models {
		m := &models[i]
		if !m.Ready {
			continue
		}
		for _, id := range append([]string{m.Name}, m.Aliases...) {
			list = append(list, describe(m, id))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	m, err := s.model(id)
	if err != nil {
		asAPI(err).write(w)
		return
	}
	if id == "" {
		id = m.Name
	}
	writeJSON(w, http.StatusOK, describe(m, id))
}

// model finds a model that is ready by name or alias; "" is the first.
func (s *Server) model(name string) (*Model, error) {
	models := s.node.Models()
	for i := range models {
		m := &models[i]
		if name != "" && m.Name != name && !slices.Contains(m.Aliases, name) {
			continue
		}
		if m.Ready {
			return m, nil
		}
		if name == "" && i+1 < len(models) && m.Error != "" {
			continue // a model that failed is nobody's default
		}
		return nil, notReady(m)
	}
	if len(models) == 0 {
		e := fault(http.StatusServiceUnavailable, "service_unavailable_error", "no_model", "no model is loaded; load one with: ieg models load FILE")
		e.RetryAfter = retrySoon
		return nil, e
	}
	e := fault(http.StatusNotFound, "invalid_request_error", "model_not_found", "no model %q here; %s", name, readyNames(models))
	e.Param = "model"
	return nil, e
}

// readyNames says which names can be asked for.
func readyNames(models []Model) string {
	var names []string
	for i := range models {
		if models[i].Ready {
			names = append(names, models[i].Name)
			names = append(names, models[i].Aliases...)
		}
	}
	if len(names) == 0 {
		return "none is ready; see /health"
	}
	if len(names) > MaxNamesShown {
		names = append(names[:MaxNamesShown], "…")
	}
	return "loaded: " + strings.Join(names, ", ")
}

func notReady(m *Model) *apiError {
	if m.Error != "" {
		return fault(http.StatusServiceUnavailable, "service_unavailable_error", "model_failed", "model %q is not running: %s", m.Name, m.Error)
	}
	e := fault(http.StatusServiceUnavailable, "service_unavailable_error", "model_loading",
		"model %q is loading (%.0f %%); try again", m.Name, 100*m.Loading)
	e.RetryAfter = retrySoon
	e.Loading = &loadingBody{Model: m.Name, Progress: m.Loading}
	return e
}

type healthBody struct {
	Status string        `json:"status"`
	Models []modelHealth `json:"models"`
}

type modelHealth struct {
	ID       string   `json:"id"`
	State    string   `json:"state"` // ready, loading, failed
	Progress *float64 `json:"progress,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// health is 200 while at least one model serves and the node isn't draining.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	body := healthBody{Status: "no model", Models: []modelHealth{}}
	ready := false
	for _, m := range s.node.Models() {
		h := modelHealth{ID: m.Name, State: "ready"}
		switch {
		case m.Ready:
			ready = true
		case m.Error != "":
			h.State, h.Error = "failed", m.Error
		default:
			h.State, h.Progress = "loading", &m.Loading
			body.Status = "loading"
		}
		body.Models = append(body.Models, h)
	}
	switch {
	case s.draining.Load():
		body.Status, ready = "draining", false
	case ready:
		body.Status = "ok"
	case body.Status != "loading" && len(body.Models) > 0:
		body.Status = "failed"
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", fmt.Sprint(int(retrySoon.Seconds())))
	}
	writeJSON(w, status, body)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"version": s.cfg.Version})
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Metrics == nil {
		fault(http.StatusNotFound, "invalid_request_error", "unknown_url", "metrics are not served here").write(w)
		return
	}
	s.cfg.Metrics.ServeHTTP(w, r)
}
