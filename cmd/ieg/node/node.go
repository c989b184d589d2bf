package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/devices/engine"
	"ieg/kernel"
	"ieg/kernel/run"
)

// Device is a device of this host that engines can run on.
type Device struct {
	Spec ieg.ResourceSpec
	// Free is what models may take, in bytes.
	Free int64
	// Library is the device's name inside the engine's library; "" is the CPU.
	Library string
	// Backend names the build of the library that drives it; "" is the CPU's.
	Backend string
	Notes   []string
}

// Config plugs a node together.
type Config struct {
	Kernel    kernel.Config
	Observers []run.Observer
	// Before sees each event before it is applied; may be nil.
	Before func(now ieg.Time, ev kernel.Event, m *kernel.Machine)
	// Command starts a child, for example {"/usr/bin/ieg", "engine", "serve"}.
	Command []string
	// Devices are the host's; AddDevices adds what is found later.
	Devices []Device
	// Prepare completes a spec before the model is loaded: it finds the
	// libraries, checks the file and estimates the bytes needed. It may read
	// the disk.
	Prepare func(spec *engine.LoadSpec, device Device) (need int64, err error)
	Log     *slog.Logger

	// Arena is the memory below the devices, nil for none; Mover and Find are
	// the NVMe tier's, nil if there is none.
	Arena *Arena
	Mover run.Mover
	// Find tells what the NVMe tier holds of a prompt; it is called from the
	// goroutines of requests.
	Find func(info *ieg.EngineInfo, tenant string, prompt []ieg.Token) ieg.Stored
}

// Arena is the memory for KV that engines share with the node.
type Arena struct {
	File      *os.File
	Bytes     int64
	PageBytes int
}

// Node is the runtime of one host without its sockets.
type Node struct {
	cfg  Config
	loop *run.Loop
	log  *slog.Logger
	last atomic.Uint64 // the number of the request that came last

	mu     sync.Mutex
	models []*model // in the order of loading
	devs   []Device
	nextID ieg.EngineID
	deaths []admin.Death // newest first
	wake   chan struct{} // closed and replaced when the table changes
	probed chan struct{} // closed when all devices are known
	// salted are roots of texts with a cache_salt, as requests came, with the
	// kind of KV. A root alone doesn't tell whose it is.
	salted map[ieg.BlockHash]string
}

// model is one row of the table.
type model struct {
	id      ieg.EngineID
	spec    engine.LoadSpec
	device  Device
	created time.Time

	child    *engine.Child
	info     ieg.EngineInfo
	pid      int
	fraction float64
	state    ieg.EngineState
	reason   string
	// admitted gets the kernel's answer to the load, gone is closed when the
	// engine has left the kernel.
	admitted  chan error
	gone      chan struct{}
	unloading bool
	refused   chan error // the kernel's answer to an unload it won't do
}

// New makes a node; Run starts it.
func New(cfg Config) (*Node, error) {
	if len(cfg.Devices) == 0 || len(cfg.Devices) > DevicesMax || len(cfg.Command) == 0 || cfg.Prepare == nil {
		return nil, errors.New("node: 1 to 1,024 devices, the child's command and Prepare are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{cfg: cfg, log: cfg.Log, wake: make(chan struct{}), devs: cfg.Devices, probed: make(chan struct{}), salted: map[ieg.BlockHash]string{}}
	loop, err := run.New(run.Config{Kernel: cfg.Kernel, Starter: starter{n}, Observers: cfg.Observers, Before: cfg.Before, Mover: cfg.Mover})
	if err != nil {
		return nil, err
	}
	n.loop = loop
	// Before anything else can be posted; the inbox holds them until Run.
	if a := cfg.Arena; a != nil {
		loop.Post(kernel.HostUp{Pages: int32(a.Bytes / int64(a.PageBytes)), PageBytes: int64(a.PageBytes)})
	}
	for _, d := range cfg.Devices {
		loop.Post(kernel.DeviceUp{Spec: d.Spec, Free: d.Free})
	}
	return n, nil
}

// Loop is the node's loop, for the watchdog and the recorder.
func (n *Node) Loop() *run.Loop { return n.loop }

// Run runs the loop until ctx ends, then closes every engine.
func (n *Node) Run(ctx context.Context) error {
	err := n.loop.Run(ctx)
	n.closeAll()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (n *Node) closeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), CloseWait)
	defer cancel()
	n.mu.Lock()
	rows := slices.Clone(n.models)
	n.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range rows {
		if m.child != nil {
			wg.Go(func() {
				if err := m.child.Close(ctx); err != nil {
					n.log.Warn("engine had to be killed", "model", m.spec.Name, "error", err)
				}
			})
		}
	}
	wg.Wait()
}

// changed wakes those who wait for the table; n.mu is held.
func (n *Node) changed() {
	close(n.wake)
	n.wake = make(chan struct{})
}

// Changed is closed at the next change of the table.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wake
}

// byID finds a row; n.mu is held.
func (n *Node) byID(id ieg.EngineID) *model {
	for _, m := range n.models {
		if m.id == id {
			return m
		}
	}
	return nil
}

// byName finds a row by name or alias; n.mu is held.
func (n *Node) byName(name string) *model {
	for _, m := range n.models {
		if m.spec.Name == name || slices.Contains(m.spec.Aliases, name) {
			return m
		}
	}
	return nil
}
