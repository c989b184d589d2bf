package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/api/openai"
	"ieg/devices/engine"
	"ieg/kernel/run"
)

// OpenAI is the node as the API sees it.
type OpenAI struct{ n *Node }

var _ openai.Node = OpenAI{}

// OpenAI returns the node as the API sees it.
func (n *Node) OpenAI() OpenAI { return OpenAI{n} }

// Now is the loop's clock.
func (o OpenAI) Now() ieg.Time { return o.n.loop.Now() }

// Models lists the models in the order of loading.
func (o OpenAI) Models() []openai.Model {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	out := make([]openai.Model, 0, len(o.n.models))
	for _, m := range o.n.models {
		if m.unloading {
			continue
		}
		row := openai.Model{
			ModelInfo: m.modelInfo(), Context: m.info.SlotTokens, Slots: m.info.Slots,
			Ready: m.state == ieg.EngineUp || m.restarting(), Loading: m.fraction, Created: m.created.Unix(),
		}
		if m.state == ieg.EngineDown && !row.Ready {
			row.Error = m.reason
		}
		out = append(out, row)
	}
	return out
}

// restarting tells that the engine was up and comes back by itself: requests
// wait for it.
func (m *model) restarting() bool {
	return m.info.Slots > 0 && m.state != ieg.EngineUp && !isClosed(m.gone)
}

// modelInfo is what is known of the model: all once it was up, else its name.
func (m *model) modelInfo() ieg.ModelInfo {
	info := m.info.Model
	info.Name, info.Aliases, info.Path = m.spec.Name, m.spec.Aliases, m.spec.Path
	return info
}

func (o OpenAI) child(name string) (*engine.Child, error) {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	m := o.n.byName(name)
	if m == nil || m.child == nil {
		return nil, fmt.Errorf("%w: %q", ieg.ErrNoModel, name)
	}
	return m.child, nil
}

// Tokenize asks the model's child, beside its steps.
func (o OpenAI) Tokenize(ctx context.Context, model string, parts []openai.Part) ([]ieg.Token, error) {
	c, err := o.child(model)
	if err != nil {
		return nil, err
	}
	in := make([]engine.Part, len(parts))
	for i, p := range parts {
		in[i] = engine.Part(p)
	}
	var out []ieg.Token
	err = o.patiently(ctx, model, func() error { out, err = c.Tokenize(ctx, in); return err })
	return out, err
}

// patiently repeats a call that failed because the engine is being started
// again, for at most RestartWait.
func (o OpenAI) patiently(ctx context.Context, name string, call func() error) error {
	late := time.After(RestartWait)
	for {
		wake := o.n.Changed()
		err := call()
		if !errors.Is(err, ieg.ErrEngineLost) || !o.restarts(name) {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return err
		}
	}
}

// restarts tells whether it is worth calling again.
func (o OpenAI) restarts(name string) bool {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	m := o.n.byName(name)
	return m != nil && m.info.Slots > 0 && !m.unloading && !isClosed(m.gone)
}

// Detokenize is the inverse.
func (o OpenAI) Detokenize(ctx context.Context, model string, tokens []ieg.Token) (string, error) {
	c, err := o.child(model)
	if err != nil {
		return "", err
	}
	var out string
	err = o.patiently(ctx, model, func() error { out, err = c.Detokenize(ctx, tokens); return err })
	return out, err
}

// Submit hands a request to the loop.
func (o OpenAI) Submit(req *ieg.Request, sink openai.Sink) (openai.Handle, error) {
	o.n.find(req)
	h, err := o.n.loop.Submit(req, sink)
	if err != nil {
		return nil, err
	}
	o.n.last.Store(uint64(h.ID()))
	return h, nil
}

// find adds what the NVMe tier holds of the prompt.
func (n *Node) find(req *ieg.Request) {
	if n.cfg.Arena == nil || req.Kind != ieg.Generate {
		return
	}
	n.mu.Lock()
	m := n.byName(req.Model)
	var info ieg.EngineInfo
	if m != nil {
		info = m.info
	}
	n.mu.Unlock()
	if info.KVToken == 0 {
		return
	}
	n.meet(info.KVName, req.Tenant)
	if n.cfg.Find != nil {
		req.Stored = n.cfg.Find(&info, req.Tenant, req.Prompt)
	}
}

// Status is what the loop published last.
func (n *Node) Status() ieg.Status { return n.loop.Status() }

// Last names the request that came last.
const Last = "last"

// Explain tells the story of a request.
func (n *Node) Explain(id string) (ieg.Explain, error) {
	if id == Last {
		last := ieg.RequestID(n.last.Load())
		if last == 0 {
			return ieg.Explain{}, fmt.Errorf("%w: no request has come yet; make one by 'ieg chat'", admin.ErrNotFound)
		}
		id = last.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), InspectWait)
	defer cancel()
	ex, err := n.loop.Explain(ctx, id)
	if err == nil || ctx.Err() != nil || errors.Is(err, run.ErrStopped) {
		return ex, err
	}
	return ex, fmt.Errorf("%w: %w", admin.ErrNotFound, err)
}

// Deaths lists the last ends of engines, newest first.
func (n *Node) Deaths() []admin.Death {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.deaths)
}

// Devices lists the host's devices with their engines.
func (n *Node) Devices() []admin.Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]admin.Device, 0, len(n.devs))
	for _, d := range n.devs {
		row := admin.Device{Spec: d.Spec, FreeBytes: d.Free, Library: d.Library, Notes: d.Notes}
		for _, m := range n.models {
			if m.device.Spec.ID == d.Spec.ID && m.state == ieg.EngineUp {
				row.Engines = append(row.Engines, m.info)
				row.FreeBytes -= m.info.WeightBytes + m.info.KVBytes + m.info.ComputeBytes
			}
		}
		out = append(out, row)
	}
	return out
}

// Models lists the models for the admin socket.
func (n *Node) Models() []admin.Model {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]admin.Model, 0, len(n.models))
	for _, m := range n.models {
		out = append(out, m.row())
	}
	return out
}

func (m *model) row() admin.Model {
	return admin.Model{ModelInfo: m.modelInfo(), Engine: m.id, State: string(m.state), Reason: m.reason, Loading: m.fraction,
		Context: m.info.SlotTokens, Slots: m.info.Slots, Device: m.device.Spec.ID, PID: m.pid,
		KVToken: m.info.KVToken, KVNote: m.info.KVNote}
}

// LoadModel loads a model for the admin socket.
func (n *Node) LoadModel(ctx context.Context, l admin.LoadModel) (admin.Model, error) {
	id, err := n.Load(ctx, SpecOf(l))
	if err != nil {
		return admin.Model{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.byID(id); m != nil {
		return m.row(), nil
	}
	return admin.Model{}, fmt.Errorf("%w: %q was unloaded at once", ieg.ErrNoModel, l.Name)
}

// UnloadModel unloads a model for the admin socket.
func (n *Node) UnloadModel(ctx context.Context, u admin.UnloadModel) error {
	return n.Unload(ctx, u.Name, u.Force)
}

// SpecOf is what the engine needs to know of a wish to load.
func SpecOf(l admin.LoadModel) engine.LoadSpec {
	return engine.LoadSpec{
		Name: l.Name, Aliases: l.Aliases, Path: l.Path, Context: l.Context, Slots: l.Slots, Threads: l.Threads,
		KVType: l.KVType, Layout: l.Layout, FlashAttn: l.FlashAttn, Device: l.Device, Embedding: l.Embedding,
	}
}
