package main

import (
	"log/slog"
	"net"
	"net/http"

	"ieg/api/openai"
	"ieg/cmd/ieg/config"
)

// openDoor makes the HTTP API; metrics serves /metrics.
func (s *server) openDoor(metrics http.Handler) error {
	cfg := openai.Config{
		AllowedHosts: s.cfg.AllowHosts, AllowedOrigins: s.cfg.AllowOrigins,
		Version: ownVersion().Version, Metrics: metrics, Log: s.log,
	}
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	cfg.Loopback = config.Loopback(host)
	if s.cfg.APIKeyFile != "" {
		if cfg.Keys, err = openai.LoadKeys(s.cfg.APIKeyFile); err != nil {
			return &config.Error{Field: "api_key_file", Text: err.Error()}
		}
	}
	if err := cfg.Validate(); err != nil {
		return &config.Error{Field: "listen", Text: err.Error()}
	}
	s.door = openai.New(cfg, s.node.OpenAI())
	s.api = s.door.HTTPServer()
	s.api.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	return nil
}
