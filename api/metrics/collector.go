package metrics

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"ieg"
	"ieg/kernel/meter"
)

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// single is a metric with one value per engine; NaN is left out. fixed are
// further labels and their values.
type single struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	fixed []string
	value func(e *meter.Engine) float64
}

// spread is a histogram per engine.
type spread struct {
	desc  *prometheus.Desc
	value func(e *meter.Engine) meter.Histogram
}

// timing is a histogram per engine and class; alias is its sum over classes
// under vLLM's name.
type timing struct {
	desc, alias *prometheus.Desc
	value       func(l *meter.Latency) meter.Histogram
}

// collector turns snapshots into metrics.
type collector struct {
	cfg     Config
	own     []single // labels model, engine, device
	aliases []single // labels model_name, engine
	spreads []spread
	others  []spread // vLLM's
	timings []timing
	node    nodeDescs
}

// nodeDescs describe what belongs to no engine.
type nodeDescs struct {
	waiting, running, arrived, goodput, attainment, rejected, build, cache *prometheus.Desc
}

func newCollector(cfg Config) *collector {
	c := &collector{cfg: cfg}
	c.own, c.spreads = ownSingles(), ownSpreads()
	c.aliases, c.others = vllmSingles(), vllmSpreads()
	c.timings = timings()
	c.node = nodeDescs{
		waiting:    desc("ieg_requests_waiting", "Live requests without a row of KV."),
		running:    desc("ieg_requests_running", "Live requests with a sequence that holds a row of KV."),
		arrived:    desc("ieg_requests_arrived_total", "Requests that reached the kernel, by class.", "class"),
		goodput:    desc("ieg_goodput_requests_total", "Requests that succeeded within the SLO of their class.", "class"),
		attainment: desc("ieg_slo_attainment_ratio", "Requests that met their SLO over all that ended, without those the client cancelled.", "class"),
		rejected:   desc("ieg_requests_rejected_total", "Requests refused by the kernel, by reason.", "reason"),
		build:      desc("ieg_build_info", "Always 1; the version is a label.", "version"),
		cache: desc("vllm:cache_config_info", "Always 1; the KV cache's configuration, in nominal blocks.",
			"model_name", "engine", "block_size", "num_gpu_blocks", "cache_dtype", "enable_prefix_caching"),
	}
	return c
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe is required by prometheus.Collector; series come and go with
// engines, so that the set is described by what Collect sends.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, list := range [][]single{c.own, c.aliases} {
		for _, m := range list {
			ch <- m.desc
		}
	}
	for _, list := range [][]spread{c.spreads, c.others} {
		for _, m := range list {
			ch <- m.desc
		}
	}
	for _, m := range c.timings {
		ch <- m.desc
		ch <- m.alias
	}
	n := c.node
	for _, d := range []*prometheus.Desc{n.waiting, n.running, n.arrived, n.goodput, n.attainment, n.rejected, n.build, n.cache} {
		ch <- d
	}
}

// Collect sends one snapshot.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.cfg.Snapshot()
	c.collectNode(ch, &s)
	for i := range s.Engines {
		c.collectEngine(ch, &s.Engines[i])
	}
}

func (c *collector) collectNode(ch chan<- prometheus.Metric, s *meter.Snapshot) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	send(c.node.waiting, gauge, float64(s.Waiting))
	send(c.node.running, gauge, float64(s.Running))
	for i, k := range s.Classes {
		class := ieg.Class(i).String()
		send(c.node.arrived, counter, float64(k.Arrived), class)
		send(c.node.goodput, counter, float64(k.Met), class)
		if ratio, ok := k.Attainment(); ok {
			send(c.node.attainment, gauge, ratio, class)
		}
	}
	for i, n := range s.Rejected {
		send(c.node.rejected, counter, float64(n), meter.Reason(i).String())
	}
	send(c.node.build, gauge, 1, c.cfg.Version)
}

func (c *collector) collectEngine(ch chan<- prometheus.Metric, e *meter.Engine) {
	id := strconv.FormatUint(uint64(e.ID), 10)
	own, vllm := []string{e.Model, id, e.Device}, []string{e.Model, id}
	sendSingles(ch, c.own, e, own)
	sendSingles(ch, c.aliases, e, vllm)
	for _, m := range c.spreads {
		sendHistogram(ch, m.desc, m.value(e), own)
	}
	for _, m := range c.others {
		sendHistogram(ch, m.desc, m.value(e), vllm)
	}
	for _, m := range c.timings {
		var all []meter.Histogram
		for class := range e.Latency {
			h := m.value(&e.Latency[class])
			all = append(all, h)
			sendHistogram(ch, m.desc, h, append(own[:3:3], ieg.Class(class).String()))
		}
		sendHistogram(ch, m.alias, meter.Merge(all...), vllm)
	}
	if e.Cells > 0 {
		ch <- prometheus.MustNewConstMetric(c.node.cache, gauge, 1, e.Model, id, strconv.Itoa(meter.BlockTokens),
			strconv.Itoa(int(e.Cells)/meter.BlockTokens), e.KVType, strconv.FormatBool(e.Prefixes))
	}
}

func sendSingles(ch chan<- prometheus.Metric, list []single, e *meter.Engine, labels []string) {
	for _, m := range list {
		if v := m.value(e); !math.IsNaN(v) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, append(labels[:len(labels):len(labels)], m.fixed...)...)
		}
	}
}

// sendHistogram sends h with the cumulative counts that Prometheus wants.
func sendHistogram(ch chan<- prometheus.Metric, d *prometheus.Desc, h meter.Histogram, labels []string) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var sum uint64
	for i, bound := range h.Bounds {
		sum += h.Counts[i]
		buckets[bound] = sum
	}
	ch <- prometheus.MustNewConstHistogram(d, h.Count, h.Sum, buckets, labels...)
}
