package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
)

// A setting that a flag or the environment can override. Env is the flag's
// name in capitals after IEG_.
type override struct {
	flag, path, usage string
}

var overrides = []override{
	{"listen", "listen", "address of the HTTP API"},
	{"api-key-file", "api_key_file", "file with one API key a line; needed off loopback"},
	{"data-dir", "data_dir", "folder for measurements and recordings"},
	{"cache-dir", "cache_dir", "folder for fetched libraries and models"},
	{"lib", "lib", "folder of llama.cpp's CPU libraries; empty: the program's own, or the fetched ones"},
	{"admin", "admin", "Unix socket of the CLI"},
	{"admin-group", "admin_group", "group whose members may use the admin socket"},
	{"drain-timeout", "drain_timeout", "longest wait for running requests at the end"},
	{"max-queue", "max_queue", "most waiting requests of an engine; more get 429"},
	{"kv-host", "kv.host", "main memory for KV of idle and preempted sequences; auto, 0 for none"},
	{"kv-nvme", "kv.nvme", "space in the data folder for KV; auto, 0 for none"},
	{"kv-key-file", "kv.key_file", "file with the key that KV in the data folder is encrypted with"},
	{"kv-events", "kv.events", "ZMQ address where KV events are published, as vLLM does"},
	{"log-format", "log_format", "auto, text or json"},
	{"log-level", "log_level", "debug, info, warn or error"},
}

// Flags of models apply to every model, of the file and of --model.
var modelOverrides = []override{
	{"ctx", "ctx", "tokens of context of each model; 0: sized to memory"},
	{"slots", "slots", "sequences held at once by each model; 0: by default"},
	{"threads", "threads", "cores granted to each model; 0: all but one"},
	{"kv-type", "kv_type", "type of KV elements: f16, q8_0 …"},
	{"layout", "layout", "KV layout: auto (measured), unified or streams"},
	{"flash-attention", "flash_attention", "auto, on or off"},
	{"device", "device", "device of each model, as shown by 'ieg devices'"},
}

// Flags holds the values of command-line flags until Load.
type Flags struct {
	set       *pflag.FlagSet
	config    string
	models    []string
	allowList []string
}

// Register adds the node's flags to a flag set.
func Register(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set}
	def := Default()
	set.StringVar(&f.config, "config", "", "YAML file with settings; flags override it")
	set.StringArrayVar(&f.models, "model", nil, "`FILE` in the GGUF format to load, or NAME[,ALIAS…]=FILE; repeatable; replaces the models of the configuration")
	set.StringSliceVar(&f.allowList, "allow-origin", nil, "browser origin that may call the API, repeatable")
	for _, o := range overrides {
		v, ok := def.find(o.path)
		if !ok {
			panic("config: no setting " + o.path)
		}
		set.String(o.flag, textOf(v), o.usage)
	}
	model := DefaultModel()
	for _, o := range modelOverrides {
		i, ok := fieldIndex(reflect.TypeFor[Model](), o.path)
		if !ok {
			panic("config: no setting of a model " + o.path)
		}
		set.String(o.flag, textOf(reflect.ValueOf(&model).Elem().Field(i)), o.usage)
	}
	return f
}

// envName is the variable of a flag.
func envName(flag string) string {
	return "IEG_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Load puts defaults, file, environment and flags together and checks the
// whole.
func (f *Flags) Load() (*Effective, error) {
	e := Default()
	file := f.config
	if file == "" {
		file = os.Getenv("IEG_CONFIG")
	}
	if file != "" {
		if err := e.ReadFile(file); err != nil {
			return nil, err
		}
	}
	for _, o := range overrides {
		if text, ok := os.LookupEnv(envName(o.flag)); ok {
			if err := e.set(o.path, text, "env "+envName(o.flag)); err != nil {
				return nil, err
			}
		}
		if fl := f.set.Lookup(o.flag); fl.Changed {
			if err := e.set(o.path, fl.Value.String(), "flag --"+o.flag); err != nil {
				return nil, err
			}
		}
	}
	if f.set.Changed("allow-origin") {
		e.AllowOrigins = f.allowList
		e.sources["allow_origins"] = "flag --allow-origin"
	}
	if err := f.loadModels(e); err != nil {
		return nil, err
	}
	if err := e.absolute(); err != nil {
		return nil, err
	}
	e.nameModels()
	return e, e.Validate()
}

func (f *Flags) loadModels(e *Effective) error {
	if f.set.Changed("model") {
		e.dropModels()
		for i, text := range f.models {
			e.AddModel(ParseModel(text), fmt.Sprintf("flag --model (%d)", i+1))
		}
	}
	for _, o := range modelOverrides {
		fl := f.set.Lookup(o.flag)
		if !fl.Changed {
			continue
		}
		// A wrong value is told even where it meets no model.
		none := DefaultModel()
		if err := none.set(o, fl.Value.String()); err != nil {
			return err
		}
		if err := CheckModel(none); err != nil && len(e.Models) == 0 {
			return fmt.Errorf("%w (flag --%s)", err, o.flag)
		}
		for i := range e.Models {
			if err := e.Models[i].set(o, fl.Value.String()); err != nil {
				return err
			}
			e.sources[fmt.Sprintf("models[%d].%s", i, o.path)] = "flag --" + o.flag
		}
	}
	return nil
}

func (m *Model) set(o override, text string) error {
	n, _ := fieldIndex(reflect.TypeFor[Model](), o.path)
	v := reflect.ValueOf(m).Elem().Field(n)
	if err := setText(v, text); err != nil {
		return &Error{Field: "--" + o.flag, Text: fmt.Sprintf("wants %s, not %q", wants(v), text)}
	}
	return nil
}

// AddModel appends a model that came from source.
func (e *Effective) AddModel(m Model, source string) {
	at := fmt.Sprintf("models[%d]", len(e.Models))
	e.Models = append(e.Models, m)
	e.sources["models"] = source
	e.sources[at+".path"] = source
	if m.Name != "" {
		e.sources[at+".name"] = source
	}
	if len(m.Aliases) > 0 {
		e.sources[at+".aliases"] = source
	}
}

func (e *Effective) dropModels() {
	for path := range e.sources {
		if strings.HasPrefix(path, "models[") {
			delete(e.sources, path)
		}
	}
	e.Models = nil
}

// ParseModel reads "[NAME[,ALIAS…]=]FILE". A text whose part before the first
// "=" holds a slash, or that begins with SynthPrefix, is a file as a whole.
func ParseModel(text string) Model {
	m := DefaultModel()
	names, file, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsRune(names, '/') || names == "" || IsSynth(text) {
		m.Path = expand(text)
		return m
	}
	m.Path = expand(file)
	list := strings.Split(names, ",")
	m.Name, m.Aliases = list[0], list[1:]
	if len(m.Aliases) == 0 {
		m.Aliases = nil
	}
	return m
}

func (e *Effective) set(path, text, source string) error {
	v, ok := e.find(path)
	if !ok {
		panic("config: no setting " + path)
	}
	if err := setText(v, text); err != nil {
		return &Error{Field: source, Text: fmt.Sprintf("wants %s, not %q", wants(v), text)}
	}
	e.sources[path] = source
	return nil
}

// expand turns a leading ~/ into the home folder.
func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// resolve makes the paths that the file gave relative to its folder.
func (e *Effective) resolve(dir string) {
	fix := func(path string, v *string) {
		if s, ok := e.sources[path]; !ok || !strings.HasPrefix(s, e.file+":") || *v == "" {
			return
		}
		*v = expand(*v)
		if !filepath.IsAbs(*v) && !IsSynth(*v) {
			*v = filepath.Join(dir, *v)
		}
	}
	fix("api_key_file", &e.APIKeyFile)
	fix("data_dir", &e.DataDir)
	fix("cache_dir", &e.CacheDir)
	fix("lib", &e.Lib)
	fix("admin", &e.Admin)
	fix("kv.key_file", &e.KV.KeyFile)
	for i := range e.Models {
		fix(fmt.Sprintf("models[%d].path", i), &e.Models[i].Path)
	}
}

// absolute makes every path one that means the same in any folder.
func (e *Effective) absolute() error {
	paths := []*string{&e.APIKeyFile, &e.DataDir, &e.CacheDir, &e.Lib, &e.Admin, &e.KV.KeyFile}
	for i := range e.Models {
		paths = append(paths, &e.Models[i].Path)
	}
	for _, p := range paths {
		if *p == "" || IsSynth(*p) {
			continue
		}
		abs, err := filepath.Abs(expand(*p))
		if err != nil {
			return &Error{Text: err.Error()}
		}
		*p = abs
	}
	return nil
}

// SynthPrefix begins the path of a model of the synthetic engine.
const SynthPrefix = "synth:"

// IsSynth tells whether a model's path names the synthetic engine.
func IsSynth(path string) bool { return strings.HasPrefix(path, SynthPrefix) }

// ModelName is the name of a model that was given none.
func ModelName(path string) string {
	if rest, ok := strings.CutPrefix(path, SynthPrefix); ok {
		if rest == "" {
			return "synth"
		}
		return "synth-" + rest
	}
	return strings.TrimSuffix(filepath.Base(path), ".gguf")
}

func (e *Effective) nameModels() {
	for i := range e.Models {
		if m := &e.Models[i]; m.Name == "" && m.Path != "" {
			m.Name = ModelName(m.Path)
		}
	}
}
