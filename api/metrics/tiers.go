package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"ieg"
	"ieg/api/admin"
)

// tierMetric is a metric of the KV tiers with the values of its label, in
// order; without a label it has one value.
type tierMetric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values []string
	value  func(t *admin.KVTiers) []float64
}

// tiers are the metrics of the KV tiers of the node.
type tiers struct {
	look    func() admin.KVTiers
	metrics []tierMetric
	mu      sync.Mutex
	sent    map[*prometheus.Desc][]float64 // of counters, the most
	// Of engines, by model, engine and device.
	save, load *prometheus.Desc
}

func newTiers(look func() admin.KVTiers) *tiers {
	t := &tiers{look: look, metrics: append(tierGauges(), tierCounters()...), sent: map[*prometheus.Desc][]float64{}}
	t.save = desc("ieg_kv_save_bytes_per_second", "Measured speed of copies of KV from the device to host memory.", ownLabels...)
	t.load = desc("ieg_kv_load_bytes_per_second", "Measured speed of copies of KV from host memory to the device.", ownLabels...)
	return t
}

func tierGauges() (out []tierMetric) {
	add := func(name, help, label string, values []string, value func(t *admin.KVTiers) []float64) {
		out = append(out, newTierMetric(gauge, name, help, label, values, value))
	}
	lower := []string{ieg.TierHost.String(), ieg.TierNVMe.String()}
	add("ieg_kv_tier_bytes", "KV that a tier holds.", "tier", lower, func(t *admin.KVTiers) []float64 {
		k := &t.Kernel
		return []float64{float64(int64(k.Pages-k.FreePages) * k.PageBytes), float64(t.NVMe.Bytes)}
	})
	add("ieg_kv_tier_size_bytes", "What a tier may hold at most.", "tier", lower, func(t *admin.KVTiers) []float64 {
		return []float64{float64(t.Host.Bytes), float64(t.NVMe.Size)}
	})
	add("ieg_kv_tier_blocks", "Blocks that a tier holds.", "tier", lower, func(t *admin.KVTiers) []float64 {
		return []float64{float64(t.Kernel.Blocks), float64(t.NVMe.Blocks)}
	})
	add("ieg_kv_nvme_up", "1 while KV is kept in the data folder; 0 while that is off, being opened or down.", "", nil, func(t *admin.KVTiers) []float64 { return []float64{truth(t.NVMe.Up)} })
	add("ieg_kv_nvme_down", "1 while the data folder can't be used for KV: it is broken, is tried again, and comes back by itself. 0 where it is off by the settings.", "", nil, func(t *admin.KVTiers) []float64 {
		return []float64{truth(t.NVMe.State == admin.NVMeDown)}
	})
	add("ieg_kv_nvme_disk_bytes", "Space that KV takes on the disk, and that is free there for anybody.", "state", []string{"used", "free"}, func(t *admin.KVTiers) []float64 {
		return []float64{float64(t.NVMe.Disk), float64(t.NVMe.Free)}
	})
	add("ieg_kv_nvme_written_today_bytes", "Written to the disk for KV within 24 hours.", "", nil, func(t *admin.KVTiers) []float64 { return []float64{float64(t.NVMe.WrittenToday)} })
	add("ieg_kv_nvme_bytes_per_second", "Measured speed of the NVMe tier; 0: not measured.", "direction", []string{"read", "write"}, func(t *admin.KVTiers) []float64 {
		return []float64{t.NVMe.ReadRate, t.NVMe.WriteRate}
	})
	add("ieg_kv_leases", "Blocks held for a reason, counted by lease.", "kind", []string{"step", "move", "pin"}, func(t *admin.KVTiers) []float64 {
		l := t.Kernel.Leases
		return []float64{float64(l[0]), float64(l[1]), float64(l[2])}
	})
	add("ieg_kv_moves_waiting", "Moves to and from the NVMe tier that are under way or wait.", "", nil, func(t *admin.KVTiers) []float64 {
		return []float64{float64(t.Kernel.Moves + t.Kernel.Queued)}
	})
	add("ieg_kv_copy_seconds_max", "The longest copy of KV that running streams waited for, in the last minute or so.", "", nil, func(t *admin.KVTiers) []float64 {
		return []float64{t.Kernel.Counts.LongestCopy.Seconds()}
	})
	return out
}

func tierCounters() (out []tierMetric) {
	add := func(name, help, label string, values []string, value func(t *admin.KVTiers) []int64) {
		out = append(out, newTierMetric(counter, name, help, label, values, func(t *admin.KVTiers) (floats []float64) {
			for _, n := range value(t) {
				floats = append(floats, float64(n))
			}
			return floats
		}))
	}
	add("ieg_kv_hit_tokens_total", "Tokens whose KV was found, by tier. Resumed sequences count again.", "tier", []string{"device", "host", "nvme"}, func(t *admin.KVTiers) []int64 {
		return []int64{t.Tokens.Device, t.Tokens.Host, t.Tokens.NVMe}
	})
	add("ieg_kv_diverged_tokens_total", "Tokens of blocks that a text begins like and then leaves.", "", nil, func(t *admin.KVTiers) []int64 { return []int64{t.Kernel.Counts.Diverged} })
	kinds := []string{"save", "load", "store", "fetch"}
	add("ieg_kv_moves_total", "Copies of KV that were done: save and load between device and host, store and fetch between host and nvme.", "kind", kinds, func(t *admin.KVTiers) []int64 {
		c := &t.Kernel.Counts
		return []int64{c.Saves, c.Loads, c.Stores, c.Fetches}
	})
	add("ieg_kv_moved_bytes_total", "Bytes of these.", "kind", kinds, func(t *admin.KVTiers) []int64 {
		c := &t.Kernel.Counts
		return []int64{c.SavedBytes, c.LoadedBytes, c.StoredBytes, c.FetchedBytes}
	})
	add("ieg_kv_declined_total", "Copies not done since computing is quicker.", "kind", []string{"load", "fetch"}, func(t *admin.KVTiers) []int64 {
		return []int64{t.Kernel.Counts.BringsDeclined, t.Kernel.Counts.FetchesDeclined}
	})
	add("ieg_kv_refused_total", "Copies not done for want of room, or by a budget of the tier.", "kind", []string{"save", "store"}, func(t *admin.KVTiers) []int64 {
		return []int64{t.Kernel.Counts.SavesRefused, t.Kernel.Counts.StoresRefused}
	})
	add("ieg_kv_fetches_late_total", "Fetches that a sequence stopped to wait for.", "", nil, func(t *admin.KVTiers) []int64 { return []int64{t.Kernel.Counts.FetchesLate} })
	add("ieg_kv_fetches_failed_total", "Fetches that failed.", "", nil, func(t *admin.KVTiers) []int64 { return []int64{t.Kernel.Counts.FetchesFailed} })
	add("ieg_kv_corrupt_total", "Blocks whose bytes were not what their digest says, or were lost with their file, by where that was seen.", "tier", []string{"host", "nvme"}, func(t *admin.KVTiers) []int64 {
		return []int64{t.Kernel.Counts.Corrupt, t.NVMe.Corrupt}
	})
	add("ieg_kv_evicted_total", "Blocks that gave way to others.", "tier", []string{"host", "nvme"}, func(t *admin.KVTiers) []int64 {
		return []int64{t.Kernel.Evicted, t.NVMe.Evicted}
	})
	return out
}

func newTierMetric(kind prometheus.ValueType, name, help, label string, values []string, value func(t *admin.KVTiers) []float64) tierMetric {
	m := tierMetric{kind: kind, values: values, value: value}
	if label == "" {
		m.desc = desc(name, help)
	} else {
		m.desc = desc(name, help, label)
	}
	return m
}

// Describe is required by prometheus.Collector.
func (t *tiers) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range t.metrics {
		ch <- m.desc
	}
	ch <- t.save
	ch <- t.load
}

// Collect sends one look.
func (t *tiers) Collect(ch chan<- prometheus.Metric) {
	now := t.look()
	for _, m := range t.metrics {
		values := m.value(&now)
		if m.kind == counter {
			values = t.risen(m.desc, values)
		}
		for i, v := range values {
			if m.values == nil {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v)
			} else {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, m.values[i])
			}
		}
	}
	for i := range now.Engines {
		e := &now.Engines[i]
		if e.Info.KVToken == 0 {
			continue
		}
		labels := []string{e.Info.Model.Name, strconv.FormatUint(uint64(e.Info.ID), 10), e.Info.Device}
		ch <- prometheus.MustNewConstMetric(t.save, gauge, e.SaveRate, labels...)
		ch <- prometheus.MustNewConstMetric(t.load, gauge, e.LoadRate, labels...)
	}
}

// risen keeps counters from falling, which scrapers would take for a restart:
// hits that turn out to be wrong are counted back.
func (t *tiers) risen(d *prometheus.Desc, values []float64) []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.sent[d]; last != nil {
		for i := range values {
			values[i] = max(values[i], last[i])
		}
	}
	t.sent[d] = values
	return values
}
