package metrics

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ieg"
	"ieg/api/admin"
	"ieg/kernel"
	"ieg/kernel/meter"
)

// Config says what is served.
type Config struct {
	// Snapshot returns the counts; it is called once per scrape, from any
	// goroutine, and what it returns is not changed afterwards.
	Snapshot func() meter.Snapshot
	// KV tells how the tiers of KV are doing, under the same terms; nil: there
	// are no metrics of them.
	KV func() admin.KVTiers
	// Version is shown by ieg_build_info.
	Version string
}

// Handler answers scrapes.
func Handler(cfg Config) (http.Handler, error) {
	reg := prometheus.NewRegistry()
	list := []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(cfg),
	}
	if cfg.KV != nil {
		list = append(list, newTiers(cfg.KV))
	}
	for _, c := range list {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, EnableOpenMetrics: true, MaxRequestsInFlight: MaxScrapes,
	}), nil
}

// Tap is an observer of the loop that keeps a meter.
type Tap struct {
	mu    sync.Mutex
	meter *meter.Meter
}

// NewTap returns a tap that has seen nothing.
func NewTap(cfg meter.Config) *Tap { return &Tap{meter: meter.New(cfg)} }

// Observe feeds the meter.
func (t *Tap) Observe(now ieg.Time, ev kernel.Event, r *kernel.Ready) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meter.Observe(now, ev, r)
}

// Snapshot copies the counts.
func (t *Tap) Snapshot() meter.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.meter.Snapshot()
}
