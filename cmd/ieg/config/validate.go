package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	kvTypes = []string{"f16", "f32", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
	layouts = []string{"auto", "unified", "streams"}
	switchy = []string{"auto", "on", "off"}
	formats = []string{"auto", "text", "json"}
	levels  = []string{"debug", "info", "warn", "error"}
)

// Validate checks everything that can be checked without touching the host.
// All errors are told at once, each with the field and its source.
func (e *Effective) Validate() error {
	c := &checker{e: e}
	c.listen()
	c.oneOf("log_format", e.LogFormat, formats)
	c.oneOf("log_level", e.LogLevel, levels)
	c.between("max_queue", int64(e.MaxQueue), 1, QueueMax)
	c.span("drain_timeout", e.DrainTimeout, DrainTimeoutMax)
	c.filled("data_dir", e.DataDir)
	c.filled("cache_dir", e.CacheDir)
	c.filled("admin", e.Admin)
	c.models()
	for name, cl := range map[string]Class{"P0": e.Classes.P0, "P1": e.Classes.P1, "P2": e.Classes.P2} {
		c.span("classes."+name+".ttft", cl.TTFT, time.Hour)
		c.span("classes."+name+".itl", cl.ITL, time.Hour)
		c.span("classes."+name+".e2e", cl.E2E, 24*time.Hour)
	}
	c.share("scheduler.prefill_share", e.Scheduler.PrefillShare)
	c.share("scheduler.prefill_share_min", e.Scheduler.PrefillShareMin)
	c.between("scheduler.grant_steps", int64(e.Scheduler.GrantSteps), 0, 1024)
	c.between("recorder.segments", int64(e.Recorder.Segments), 1, SegmentsMax)
	c.span("recorder.segment_every", e.Recorder.SegmentEvery, 24*time.Hour)
	if e.Recorder.SegmentEvery < Duration(time.Second) {
		c.fail("recorder.segment_every", "is %s, at least 1s is needed", time.Duration(e.Recorder.SegmentEvery))
	}
	c.kv()
	if err := e.Spec.NotYet(); err != nil {
		c.errs = append(c.errs, withFile(e.file, err))
	}
	slices.SortFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(c.errs...)
}

type checker struct {
	e    *Effective
	errs []error
}

func (c *checker) fail(path, format string, args ...any) {
	out := &Error{Field: path, Text: fmt.Sprintf(format, args...)}
	source := c.e.Source(path)
	switch file, line, ok := cutLine(source); {
	case ok && file == c.e.file:
		out.File, out.Line, out.Column = file, line, max(c.e.columns[path], 1)
	case source != "default":
		out.Text += " (" + source + ")"
	}
	c.errs = append(c.errs, out)
}

func cutLine(source string) (string, int, bool) {
	i := strings.LastIndexByte(source, ':')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(source[i+1:])
	return source[:i], n, err == nil
}

func (c *checker) oneOf(path, v string, all []string) {
	if !slices.Contains(all, v) {
		c.fail(path, "is %q, not one of %s", v, strings.Join(all, ", "))
	}
}

func (c *checker) between(path string, v, lo, hi int64) {
	if v < lo || v > hi {
		c.fail(path, "is %d, not in %d … %d", v, lo, hi)
	}
}

func (c *checker) share(path string, v float64) {
	if !(v >= 0 && v <= 0.95) {
		c.fail(path, "is %g, not in 0 … 0.95", v)
	}
}

func (c *checker) span(path string, v Duration, most time.Duration) {
	if v < 0 || time.Duration(v) > most {
		c.fail(path, "is %s, not in 0s … %s", time.Duration(v), most)
	}
}

func (c *checker) filled(path, v string) {
	if v == "" {
		c.fail(path, "is empty")
	}
}

func (c *checker) listen() {
	host, port, err := net.SplitHostPort(c.e.Listen)
	if err != nil {
		c.fail("listen", "is %q; write HOST:PORT, for example 127.0.0.1:9430", c.e.Listen)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		c.fail("listen", "the port is %q, not in 0 … 65535", port)
	}
	if !Loopback(host) && c.e.APIKeyFile == "" {
		c.fail("listen", "%s can be reached from outside, which needs API keys; name a file with one key a line by --api-key-file, or listen on 127.0.0.1", c.e.Listen)
	}
}

// Loopback tells whether only this host can reach the address.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (c *checker) models() {
	e := c.e
	if len(e.Models) > ModelsMax {
		c.fail("models", "%d models, %d fit", len(e.Models), ModelsMax)
		return
	}
	taken := map[string]int{}
	for i, m := range e.Models {
		at := fmt.Sprintf("models[%d]", i)
		if m.Path == "" {
			c.fail(at+".path", "is empty; name a GGUF file")
			continue
		}
		c.model(at+".", m)
		if len(m.Aliases) > AliasesMax {
			c.fail(at+".aliases", "%d aliases, %d fit", len(m.Aliases), AliasesMax)
			continue
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if name == "" || len(name) > 256 || strings.ContainsAny(name, "\n\r\t\x00") {
				c.fail(at+".name", "%q is no name; 1 to 256 bytes of plain text", name)
			} else if first, ok := taken[name]; ok {
				c.fail(at+".name", "%q is taken by models[%d]; give it another by NAME=FILE", name, first)
			} else {
				taken[name] = i
			}
		}
	}
}

// model checks the values that don't depend on other models.
func (c *checker) model(at string, m Model) {
	c.between(at+"ctx", int64(m.Ctx), 0, ContextMax)
	c.between(at+"slots", int64(m.Slots), 0, SlotsMax)
	c.between(at+"threads", int64(m.Threads), 0, ThreadsMax)
	c.oneOf(at+"kv_type", m.KVType, kvTypes)
	c.oneOf(at+"layout", m.Layout, layouts)
	c.oneOf(at+"flash_attention", m.FlashAttention, switchy)
}

// CheckModel checks the values of a model that is loaded later, as Validate
// does for those of the configuration.
func CheckModel(m Model) error {
	c := &checker{e: &Effective{}}
	c.model("", m)
	return errors.Join(c.errs...)
}
