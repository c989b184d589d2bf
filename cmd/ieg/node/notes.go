package node

import (
	"slices"
	"strings"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/devices/engine"
	"ieg/kernel"
)

// note takes in what a child tells: first the table, then the kernel.
func (n *Node) note(m *model, note engine.Note) {
	switch note := note.(type) {
	case engine.Done:
		n.loop.Post(kernel.StepDone{Done: note.Step})
	case engine.Loading:
		n.mu.Lock()
		m.pid, m.fraction, m.state = note.PID, note.Fraction, loadingUnless(m.unloading)
		n.changed()
		n.mu.Unlock()
	case engine.Stalled:
		n.loop.Post(kernel.EngineStalled{Engine: note.ID, Epoch: note.Epoch, Step: note.Step, Reason: note.Reason})
	case engine.Up:
		n.up(m, note)
	case engine.Down:
		n.down(m, note)
	}
}

func loadingUnless(unloading bool) ieg.EngineState {
	if unloading {
		return ieg.EngineClosing
	}
	return ieg.EngineLoading
}

func (n *Node) up(m *model, note engine.Up) {
	info := note.Info
	info.Device = m.device.Spec.ID
	info.Model.Name, info.Model.Aliases = m.spec.Name, m.spec.Aliases
	n.mu.Lock()
	m.info, m.pid, m.fraction, m.reason = info, note.PID, 1, ""
	if !m.unloading {
		m.state = ieg.EngineUp
	}
	n.changed()
	n.mu.Unlock()
	n.loop.Post(kernel.EngineReady{Info: info})
}

func (n *Node) down(m *model, note engine.Down) {
	n.mu.Lock()
	unloading := m.unloading
	closed := unloading && note.Err == nil
	m.pid, m.reason = 0, note.Reason
	if !m.unloading {
		m.state = ieg.EngineDown
	}
	if !closed {
		n.deaths = append([]admin.Death{death(m, note)}, n.deaths...)
		n.deaths = n.deaths[:min(len(n.deaths), DeathsKept)]
	}
	n.changed()
	n.mu.Unlock()

	n.loop.Post(kernel.EngineLost{Engine: note.ID, Epoch: note.Epoch, Reason: note.Reason, Final: note.Final})
	if !note.Final {
		return
	}
	if !unloading {
		// Given up: what the kernel holds for it is given back. The row stays
		// and tells why, until the model is loaded again or unloaded.
		n.loop.Post(kernel.UnloadEngine{Engine: note.ID, Force: true})
		n.loop.Post(kernel.EngineLost{Engine: note.ID, Epoch: note.Epoch, Reason: note.Reason, Final: true})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	close(m.gone)
	n.changed()
	if m.unloading {
		n.drop(m)
	}
}

func death(m *model, note engine.Down) admin.Death {
	lines := strings.Split(strings.TrimRight(note.Stderr, "\n"), "\n")
	if note.Stderr == "" {
		lines = nil
	}
	return admin.Death{At: time.Now(), Engine: note.ID, Epoch: note.Epoch, Model: m.spec.Name, Reason: note.Reason,
		Log: slices.Clone(lines[max(0, len(lines)-DeathLogLines):])}
}
