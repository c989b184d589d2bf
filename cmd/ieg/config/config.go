package config

import (
	"os"
	"path/filepath"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/kernel/spec"
)

// Config holds every setting of a node. The zero value is of no use; start
// from Default. The order of the fields is the order of the text form.
type Config struct {
	// Listen is the address of the HTTP API. Off loopback an API key file is
	// required.
	Listen string `yaml:"listen"`
	// APIKeyFile holds one key a line; "" asks for none.
	APIKeyFile string `yaml:"api_key_file"`
	// AllowOrigins lists browser origins that may call the API.
	AllowOrigins []string `yaml:"allow_origins"`
	// AllowHosts lists further values of the Host header that are answered.
	AllowHosts []string `yaml:"allow_hosts"`
	// DataDir keeps what must outlive the node: measurements, recordings.
	DataDir string `yaml:"data_dir"`
	// CacheDir keeps what can be fetched again: libraries, models.
	CacheDir string `yaml:"cache_dir"`
	// Lib is a folder of llama.cpp's CPU libraries; "": those that the program
	// carries, or the fetched ones.
	Lib string `yaml:"lib"`
	// Admin is the Unix socket of the CLI; AdminGroup may use it too.
	Admin      string `yaml:"admin"`
	AdminGroup string `yaml:"admin_group"`
	// DrainTimeout bounds the wait for running requests at the end.
	DrainTimeout Duration `yaml:"drain_timeout"`
	// MaxQueue bounds the waiting requests of each engine; one more is
	// refused with 429.
	MaxQueue int `yaml:"max_queue"`
	// LogFormat is "auto" (text on a terminal), "text" or "json".
	LogFormat string `yaml:"log_format"`
	// LogLevel is "debug", "info", "warn" or "error".
	LogLevel string `yaml:"log_level"`

	Models    []Model   `yaml:"models"`
	Classes   Classes   `yaml:"classes"`
	Scheduler Scheduler `yaml:"scheduler"`
	Recorder  Recorder  `yaml:"recorder"`
	KV        KV        `yaml:"kv"`
}

// Model is one model to load at the start.
type Model struct {
	// Path is a GGUF file; "synth:" is the synthetic engine.
	Path string `yaml:"path"`
	// Name is what clients call it; the file's name without ending if "".
	Name    string   `yaml:"name"`
	Aliases []string `yaml:"aliases"`
	// Ctx is the most tokens of prompt and output together; 0: sized to the
	// model and the memory.
	Ctx int32 `yaml:"ctx"`
	// Slots is the number of sequences that are held at once; 0: by default.
	Slots int32 `yaml:"slots"`
	// Threads is the number of cores granted; 0: the cgroup's less one.
	Threads int `yaml:"threads"`
	// KVType is the type of KV elements: f16, f32, bf16, q8_0, q5_1 …
	KVType string `yaml:"kv_type"`
	// Layout is "auto" (measured at load), "unified" or "streams".
	Layout string `yaml:"layout"`
	// FlashAttention is "auto", "on" or "off".
	FlashAttention string `yaml:"flash_attention"`
	// Device is the ggml device's name; "" leaves it to the placement.
	Device string `yaml:"device"`
	// Embedding asks for vectors even of a model that generates.
	Embedding bool `yaml:"embedding"`
}

// Classes are the service levels per class; 0 is no bound.
type Classes struct {
	P0 Class `yaml:"P0"` // real-time chat
	P1 Class `yaml:"P1"` // interactive agent
	P2 Class `yaml:"P2"` // batch
}

// Class is the service level of one class.
type Class struct {
	TTFT Duration `yaml:"ttft"` // accepted to first token
	ITL  Duration `yaml:"itl"`  // between tokens
	E2E  Duration `yaml:"e2e"`  // accepted to last token
}

// Scheduler holds the choices of the step's make-up.
type Scheduler struct {
	// PrefillShare is the part of a step's time that prompts may take while
	// streams run, 0 … 0.95; PrefillShareMin what they get even where the
	// class's ITL could be met without them.
	PrefillShare    float64 `yaml:"prefill_share"`
	PrefillShareMin float64 `yaml:"prefill_share_min"`
	// GrantSteps is the most steps that an engine may run alone.
	GrantSteps int32 `yaml:"grant_steps"`
}

// Recorder keeps the last events of the kernel, to be replayed.
type Recorder struct {
	Enabled bool `yaml:"enabled"`
	// SegmentEvery starts a new segment, Segments is how many are kept.
	SegmentEvery Duration `yaml:"segment_every"`
	Segments     int      `yaml:"segments"`
}

// Duration is a span in text form: "30s", "200ms".
type Duration time.Duration

// MarshalText writes the span.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a span.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Default is the configuration without file, environment and flags.
func Default() *Effective {
	e := &Effective{sources: map[string]string{}, columns: map[string]int{}, Spec: spec.Default()}
	e.Config = Config{
		Listen:       "127.0.0.1:9430",
		Admin:        admin.DefaultSocket(),
		DrainTimeout: Duration(30 * time.Second),
		MaxQueue:     2048,
		LogFormat:    "auto",
		LogLevel:     "info",
		Classes: Classes{
			P0: Class{TTFT: Duration(200 * time.Millisecond), ITL: Duration(20 * time.Millisecond)},
			P1: Class{ITL: Duration(50 * time.Millisecond), E2E: Duration(5 * time.Second)},
		},
		Scheduler: Scheduler{PrefillShare: 0.68, PrefillShareMin: 0.5, GrantSteps: 32},
		Recorder:  Recorder{Enabled: true, SegmentEvery: Duration(time.Minute), Segments: 10},
		KV: KV{
			Host: AutoSize, HostCodec: ieg.CompressAuto, Lock: true, Policy: "value", CopyShare: 0.04,
			NVMe: AutoSize, NVMeCodec: ieg.CompressAuto, Reserve: AutoSize, TTL: Duration(7 * 24 * time.Hour),
		},
	}
	e.DataDir = e.dir("data_dir", "STATE_DIRECTORY", "XDG_DATA_HOME", ".local/share", "/var/lib/ieg")
	e.CacheDir = e.dir("cache_dir", "CACHE_DIRECTORY", "XDG_CACHE_HOME", ".cache", "/var/cache/ieg")
	return e
}

// dir follows systemd's variable, then the desktop's, then the home folder.
func (e *Effective) dir(path, systemd, xdg, home, system string) string {
	if d := os.Getenv(systemd); d != "" {
		e.sources[path] = "env " + systemd
		return d
	}
	if d := os.Getenv(xdg); d != "" {
		return filepath.Join(d, "ieg")
	}
	if d := os.Getenv("HOME"); d != "" {
		return filepath.Join(d, home, "ieg")
	}
	return system
}

// DefaultModel is a model with the defaults of a configuration file.
func DefaultModel() Model {
	return Model{KVType: "f16", Layout: "auto", FlashAttention: "auto"}
}

// Effective is a configuration that knows where its values came from.
type Effective struct {
	Config
	// Spec holds the blocks of the specification: limits of graphs,
	// preemption, descriptions of devices.
	Spec    spec.Config
	sources map[string]string // path of a value → source; default if absent
	columns map[string]int    // path of a value from the file → its column
	file    string
}

// Source tells where the value at a path ("models[0].ctx") came from.
func (e *Effective) Source(path string) string {
	if s, ok := e.sources[path]; ok {
		return s
	}
	return "default"
}

// File is the configuration file that was read, or "".
func (e *Effective) File() string { return e.file }
