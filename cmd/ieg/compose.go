package main

import (
	"fmt"
	"time"

	"ieg"
	"ieg/cmd/ieg/backend"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/devices/engine"
	"ieg/devices/engine/lib"
	"ieg/devices/engine/llama"
	"ieg/devices/engine/synth"
	"ieg/kernel"
	"ieg/kernel/meter"
)

// loaders are the engines that a child of this program can run.
var loaders = map[string]engine.Loader{
	"llama": llama.Load,
	"synth": synth.Load,
}

// kernelConfig turns the settings into the machine's.
func kernelConfig(e *config.Effective) kernel.Config {
	k := kernel.DefaultConfig()
	k.WaitingMax = e.MaxQueue
	k.GrantSteps = e.Scheduler.GrantSteps
	k.Pace.PrefillShare, k.Pace.PrefillShareMin = e.Scheduler.PrefillShare, e.Scheduler.PrefillShareMin
	k.Pace.ITL[ieg.P0] = time.Duration(e.Classes.P0.ITL)
	k.Pace.ITL[ieg.P1] = time.Duration(e.Classes.P1.ITL)
	k.Pace.ITL[ieg.P2] = time.Duration(e.Classes.P2.ITL)
	k.Graph.Limits = e.Spec.Limits
	k.KV.HostCodec, k.KV.CopyShare, k.KV.Policy = e.KV.HostCodec, e.KV.CopyShare, policyOf(e)
	k.Preemption = kernel.Preemption{Enabled: e.Spec.Preemption.Enabled,
		MinPriorityGap: e.Spec.Preemption.MinPriorityGap, MaxPerRequest: e.Spec.Preemption.MaxPerRequest}
	return k
}

// meterConfig are the service levels that requests are measured against. A
// class with a bound on the whole is not judged by its single tokens.
func meterConfig(e *config.Effective) meter.Config {
	slo := func(c config.Class) meter.SLO {
		s := meter.SLO{TTFT: time.Duration(c.TTFT), E2E: time.Duration(c.E2E)}
		if c.E2E == 0 {
			s.TPOT = time.Duration(c.ITL)
		}
		return s
	}
	return meter.Config{SLO: [ieg.NumClasses]meter.SLO{ieg.P0: slo(e.Classes.P0), ieg.P1: slo(e.Classes.P1), ieg.P2: slo(e.Classes.P2)}}
}

// libDirs finds the libraries for a device: the build that drives it.
func libDirs(e *config.Effective) func(node.Device) (string, error) {
	return func(d node.Device) (string, error) {
		if d.Backend == "" || d.Backend == "cpu" {
			if e.Lib != "" {
				return e.Lib, nil
			}
			return lib.Dir(e.CacheDir)
		}
		b, err := backend.Find(d.Backend)
		if err != nil {
			return "", err
		}
		if !b.Installed(e.CacheDir) {
			return "", fmt.Errorf("%w: device %s needs llama.cpp for %s; fetch it by 'ieg engine add %s' and start the node again", ieg.ErrUnsupported, d.Spec.ID, b.Name, b.Name)
		}
		return b.Dir(e.CacheDir), nil
	}
}
