package admin

import (
	"errors"
	"net/http"
	"time"

	"ieg"
)

// Device is a device of the host as the node uses it.
type Device struct {
	Spec ieg.ResourceSpec `json:"spec"`
	// FreeBytes is what admission may still give out.
	FreeBytes int64 `json:"free_bytes"`
	// Library names what drives it: "CPU", "Vulkan0" …
	Library string   `json:"library,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Engines run on it; their Info holds the measured layouts.
	Engines []ieg.EngineInfo `json:"engines,omitempty"`
}

// Model is one model of the node, loaded or on its way.
type Model struct {
	ieg.ModelInfo
	Engine  ieg.EngineID `json:"engine"`
	State   string       `json:"state"` // an ieg.EngineState
	Reason  string       `json:"reason,omitempty"`
	Loading float64      `json:"loading"` // 0 … 1
	Context int32        `json:"context"`
	Slots   int32        `json:"slots"`
	Device  string       `json:"device,omitempty"`
	PID     int          `json:"pid,omitempty"`
	// KVToken is the bytes of a token's KV that can leave the device; 0: it
	// can't, and KVNote says why.
	KVToken int64  `json:"kv_bytes_per_token,omitempty"`
	KVNote  string `json:"kv_note,omitempty"`
}

// LoadModel asks for a model to be loaded.
type LoadModel struct {
	Path      string   `json:"path"`
	Name      string   `json:"name,omitempty"`
	Aliases   []string `json:"aliases,omitempty"`
	Context   int32    `json:"ctx,omitempty"`
	Slots     int32    `json:"slots,omitempty"`
	Threads   int      `json:"threads,omitempty"`
	KVType    string   `json:"kv_type,omitempty"`
	Layout    string   `json:"layout,omitempty"`
	FlashAttn string   `json:"flash_attention,omitempty"`
	Device    string   `json:"device,omitempty"`
	Embedding bool     `json:"embedding,omitempty"`
}

// UnloadModel asks for a model to be unloaded: when it is idle, or at once.
type UnloadModel struct {
	Name  string `json:"name"`
	Force bool   `json:"force,omitempty"`
}

// Version says what runs.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	// PID and Started are of the node; zero in a client's own version.
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Listen  string    `json:"listen,omitempty"`
	DataDir string    `json:"data_dir,omitempty"`
}

// Config is the node's effective configuration.
type Config struct {
	YAML string `json:"yaml"`
	// Values maps each path to its value and where that came from.
	Values []ConfigValue `json:"values"`
}

// ConfigValue is one value of the configuration.
type ConfigValue struct {
	Path   string `json:"path"`
	Value  any    `json:"value"`
	Source string `json:"source"` // "default", "FILE:LINE", "flag --X", "env X"
}

// Death is the end of one engine's process.
type Death struct {
	At     time.Time    `json:"at"`
	Engine ieg.EngineID `json:"engine"`
	Epoch  ieg.Epoch    `json:"epoch"`
	Model  string       `json:"model"`
	Reason string       `json:"reason"`
	// Log is the tail of what the process wrote.
	Log []string `json:"log,omitempty"`
}

// Segment is one kept segment of the flight recorder.
type Segment struct {
	Name   string    `json:"name"`
	Start  time.Time `json:"start"`
	Bytes  int64     `json:"bytes"`
	Events int64     `json:"events,omitempty"`
	// Open tells that it is still being written.
	Open bool `json:"open,omitempty"`
}

// Drain asks the node to finish what runs, take nothing new, and end.
type Drain struct {
	// Now ends the node without waiting.
	Now bool `json:"now,omitempty"`
}

// Error is the JSON of a refused request.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"error"`
}

// Errors of the door itself.
var (
	// ErrNotRunning: nobody listens on the socket.
	ErrNotRunning = errors.New("no node is running")
	// ErrAlreadyRunning: a node listens on the socket already.
	ErrAlreadyRunning = errors.New("a node is already running")
	// ErrPermission: the peer may not do this.
	ErrPermission = errors.New("permission denied")
	// ErrNotFound: no such request, model or segment.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request can't be understood.
	ErrInvalid = errors.New("invalid request")
)

// codes is the one table between identities, JSON codes and HTTP states.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{ErrPermission, "permission", http.StatusForbidden},
	{ErrNotFound, "not_found", http.StatusNotFound},
	{ErrInvalid, "invalid", http.StatusBadRequest},
	{ieg.ErrNoModel, "no_model", http.StatusNotFound},
	{ieg.ErrBusy, "busy", http.StatusTooManyRequests},
	{ieg.ErrDraining, "draining", http.StatusServiceUnavailable},
	{ieg.ErrOutOfMemory, "out_of_memory", http.StatusInsufficientStorage},
	{ieg.ErrUnsupported, "unsupported", http.StatusUnprocessableEntity},
	{ieg.ErrEngineLost, "engine_lost", http.StatusBadGateway},
	{ieg.ErrDeadline, "deadline", http.StatusGatewayTimeout},
	{ieg.ErrCancelled, "cancelled", http.StatusConflict},
	{ieg.ErrContextLength, "context_length", http.StatusBadRequest},
	{ieg.ErrProtocol, "protocol", http.StatusBadRequest},
}

func codeOf(err error) (code string, status int) {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code, c.status
		}
	}
	return "internal", http.StatusInternalServerError
}

// remote is an error that came over the wire: the message of the node, the
// identity of the code.
type remote struct {
	message string
	is      error
}

func (e *remote) Error() string { return e.message }
func (e *remote) Unwrap() error { return e.is }

func (e Error) err() error {
	for _, c := range codes {
		if c.code == e.Code {
			return &remote{e.Message, c.err}
		}
	}
	return &remote{e.Message, nil}
}
