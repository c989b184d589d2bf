package node

import (
	"context"
	"fmt"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/devices/engine"
	"ieg/kernel"
	"ieg/kernel/run"
)

// Load puts a model into the table and asks the kernel to load it. It returns
// once the kernel admitted it, or with the reason why not.
func (n *Node) Load(ctx context.Context, spec engine.LoadSpec) (ieg.EngineID, error) {
	device, err := n.deviceFor(ctx, spec.Device)
	if err != nil {
		return 0, err
	}
	spec.Device = device.Library
	need, err := n.cfg.Prepare(&spec, device)
	if err != nil {
		return 0, err
	}
	m, err := n.enter(spec, device)
	if err != nil {
		return 0, err
	}
	n.loop.Post(kernel.LoadEngine{Engine: m.id, Model: spec.Name, Device: device.Spec.ID, Need: need})
	select {
	case err := <-m.admitted:
		if err != nil {
			n.remove(m)
			return 0, err
		}
		return m.id, nil
	case <-n.loop.Done():
		return 0, fmt.Errorf("%w: the node ends", ieg.ErrDraining)
	case <-ctx.Done():
		// The kernel's answer still comes; the row shows it.
		return m.id, ctx.Err()
	}
}

// enter adds a row after checking that its names are free. A row whose engine
// was given up makes way for a new try.
func (n *Node) enter(spec engine.LoadSpec, device Device) (*model, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range append([]string{spec.Name}, spec.Aliases...) {
		o := n.byName(name)
		if o == nil {
			continue
		}
		if o.state != ieg.EngineDown || !isClosed(o.gone) {
			return nil, fmt.Errorf("%w: the name %q is taken by a model that is %s; unload it or choose another by NAME=FILE", admin.ErrInvalid, name, o.state)
		}
		n.drop(o)
	}
	n.nextID++
	m := &model{
		id: n.nextID, spec: spec, device: device, created: time.Now(), state: ieg.EngineLoading,
		admitted: make(chan error, 1), refused: make(chan error, 1), gone: make(chan struct{}),
	}
	n.models = append(n.models, m)
	n.changed()
	return m, nil
}

func (n *Node) remove(m *model) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(m)
}

// drop takes a row out; n.mu is held.
func (n *Node) drop(m *model) {
	for i, o := range n.models {
		if o == m {
			n.models = append(n.models[:i:i], n.models[i+1:]...)
			break
		}
	}
	n.changed()
}

// Unload asks the kernel to end a model's engine and waits until it is gone.
func (n *Node) Unload(ctx context.Context, name string, force bool) error {
	n.mu.Lock()
	m := n.byName(name)
	if m == nil {
		n.mu.Unlock()
		return fmt.Errorf("%w: %q; see 'ieg models ls'", ieg.ErrNoModel, name)
	}
	if isClosed(m.gone) { // given up earlier; only the row is left
		n.drop(m)
		n.mu.Unlock()
		return nil
	}
	m.unloading, m.state = true, ieg.EngineClosing
	n.changed()
	n.mu.Unlock()
	n.loop.Post(kernel.UnloadEngine{Engine: m.id, Force: force})
	select {
	case <-m.gone:
		return nil
	case err := <-m.refused:
		return err
	case <-n.loop.Done():
		return fmt.Errorf("%w: the node ends", ieg.ErrDraining)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// starter is the loop's hand on the engines.
type starter struct{ n *Node }

var _ run.Starter = starter{}

// Start begins the child of an admitted model.
func (s starter) Start(id ieg.EngineID) (run.Engine, error) {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byID(id)
	if m == nil {
		return nil, fmt.Errorf("%w: engine %d is not in the table", ieg.ErrNoModel, id)
	}
	c := engine.Config{
		ID: id, Spec: m.spec, Command: n.cfg.Command, Log: n.log,
		Notify: func(note engine.Note) { n.note(m, note) },
	}
	if a := n.cfg.Arena; a != nil {
		c.Arena, c.ArenaBytes, c.ArenaPage = a.File, a.Bytes, a.PageBytes
	}
	m.child = engine.Start(c)
	m.admitted <- nil
	return m.child, nil
}

// Stop ends the child for good.
func (s starter) Stop(id ieg.EngineID) {
	n := s.n
	n.mu.Lock()
	m := n.byID(id)
	n.mu.Unlock()
	if m == nil || m.child == nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), CloseWait)
		defer cancel()
		if err := m.child.Close(ctx); err != nil {
			n.log.Warn("engine had to be killed", "model", m.spec.Name, "error", err)
		}
	}()
}

// Refused hands the kernel's reason to who asked.
func (s starter) Refused(id ieg.EngineID, err error) {
	n := s.n
	n.mu.Lock()
	m := n.byID(id)
	n.mu.Unlock()
	if m == nil {
		return
	}
	to := m.admitted
	if m.unloading {
		to = m.refused
	}
	select {
	case to <- err:
	default:
	}
}

// GivenUp tells whether no incarnation of an engine will follow.
func (n *Node) GivenUp(id ieg.EngineID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.byID(id)
	return m == nil || isClosed(m.gone)
}
