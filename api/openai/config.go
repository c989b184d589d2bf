package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Config is the configuration of the front door.
type Config struct {
	// Keys are the accepted API keys (see LoadKeys). Without any, everybody
	// is let in; Validate refuses that off loopback.
	Keys *Keys
	// Loopback tells that the listener is on a loopback address: then Host
	// and Origin must be loopback names, or one of AllowedHosts and
	// AllowedOrigins.
	Loopback bool
	// AllowedHosts are further host names (without port). Off loopback an
	// empty list allows all. AllowedOrigins are further origins: the
	// scheme and host of a page, or "*".
	AllowedHosts   []string
	AllowedOrigins []string

	// KeepAlive is the time without output after which a stream gets a
	// comment line. Default 5 s.
	KeepAlive time.Duration
	// WriteStall is the time a client may take for one write. Default 60 s.
	WriteStall time.Duration
	// RequestTimeout bounds a request from its first byte; 0: no bound.
	RequestTimeout time.Duration
	// MaxRequests bounds the requests inside the door. Default 1,024.
	MaxRequests int

	// ReportMetrics adds vLLM's "metrics" object to whole responses.
	ReportMetrics bool
	// Version is what /version reports.
	Version string
	// Metrics serves /metrics; nil: 404.
	Metrics http.Handler
	// Log gets what fails on this side (status 500 and above); nil: nothing.
	Log *slog.Logger

	// Random gives seeds and ids, Wall the date; nil: the system's.
	Random func() uint64
	Wall   func() time.Time
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	switch {
	case !c.Loopback && c.Keys.Len() == 0:
		return errors.New("API keys are required off loopback: give a key file or listen on 127.0.0.1")
	case c.KeepAlive < 0 || c.WriteStall < 0 || c.RequestTimeout < 0:
		return errors.New("time spans of the API can't be negative")
	case c.MaxRequests < 0:
		return fmt.Errorf("the most requests at once can't be %d", c.MaxRequests)
	}
	return nil
}

func (c *Config) fill() {
	if c.KeepAlive == 0 {
		c.KeepAlive = 5 * time.Second
	}
	if c.WriteStall == 0 {
		c.WriteStall = time.Minute
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = 1024
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
}
