package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"ieg"
	"ieg/cmd/ieg/backend"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/devices"
	"ieg/kernel/spec"
)

// host is what was found of this machine.
type host struct {
	machine *devices.Machine
	devices []node.Device
}

// findHost probes the machine. The CPU's speed is measured once and kept in
// stateDir, "" measures anew.
func findHost(e *config.Effective, stateDir string) host {
	h := host{machine: devices.Host()}
	for _, d := range h.machine.Devices(cpuSpeed(h.machine, stateDir)) {
		n := node.Device{Spec: overlay(e, d.Spec), Free: d.Free}
		if d.Spec.ID != devices.CPUDevice {
			n.Library, n.Backend = d.Spec.ID, "cuda"
			if b, err := backend.Find("cuda"); err == nil && !b.Installed(e.CacheDir) {
				n.Notes = append(n.Notes, "not usable yet: ieg engine add cuda")
			}
		}
		h.devices = append(h.devices, n)
	}
	return h
}

// overlay completes a device with what the configuration says of it.
func overlay(e *config.Effective, found ieg.ResourceSpec) ieg.ResourceSpec {
	for _, given := range e.Spec.ResourceSpecs {
		if strings.EqualFold(given.ID, found.ID) {
			given.ID = found.ID
			return spec.Overlay(found, given)
		}
	}
	return found
}

// measured is the CPU's speed with what it was measured on.
type measured struct {
	Model   string        `json:"model"`
	Threads int           `json:"threads"`
	Speed   devices.Speed `json:"speed"`
}

func cpuSpeed(m *devices.Machine, stateDir string) devices.Speed {
	file := filepath.Join(stateDir, "cpu.json")
	var kept measured
	if b, err := os.ReadFile(file); stateDir != "" && err == nil && json.Unmarshal(b, &kept) == nil &&
		kept.Model == m.CPU.Model && kept.Threads == m.CPU.Granted {
		return kept.Speed
	}
	now := measured{m.CPU.Model, m.CPU.Granted, devices.Measure(m.CPU.Granted)}
	debug.FreeOSMemory() // what was read through is larger than the node itself
	if b, err := json.Marshal(now); stateDir != "" && err == nil {
		// What can't be kept is measured again at the next start.
		_ = os.WriteFile(file, b, 0o600)
	}
	return now.Speed
}

// probeBackend asks a process of this program which devices a build of the
// library finds: a driver that crashes costs that process only.
func probeBackend(ctx context.Context, self string, b backend.Backend, e *config.Effective) ([]node.Device, error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "engine", "devices", b.Dir(e.CacheDir))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("llama.cpp %s: no answer within %s", b.Name, ProbeWait)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return nil, fmt.Errorf("llama.cpp %s: %w: %s", b.Name, err, lines[len(lines)-1])
	}
	var specs []ieg.ResourceSpec
	if err := json.Unmarshal(out, &specs); err != nil {
		return nil, fmt.Errorf("llama.cpp %s: %w", b.Name, err)
	}
	var found []node.Device
	for _, s := range specs {
		if s.Type == "CPU" {
			continue // the host's own
		}
		s = overlay(e, s)
		found = append(found, node.Device{Spec: s, Free: spec.FreeBytes(&s), Library: s.ID, Backend: b.Name})
	}
	return found, nil
}

// probeBackends probes every installed build beside the CPU's.
func probeBackends(ctx context.Context, self string, e *config.Effective, found func([]node.Device)) error {
	var errs []error
	for _, b := range backend.All() {
		if b.Name == "cpu" || !b.Installed(e.CacheDir) {
			continue
		}
		ds, err := probeBackend(ctx, self, b, e)
		if err == nil && len(ds) == 0 {
			err = fmt.Errorf("llama.cpp %s finds no device; it needs %s%s", b.Name, b.Needs, b.Hint)
		}
		errs = append(errs, err)
		found(ds)
	}
	return errors.Join(errs...)
}
