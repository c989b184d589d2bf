package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
)

func (a *app) devicesCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "devices", Short: "List devices, their engines and the measured KV layouts", GroupID: "host", Args: cobra.NoArgs,
		Long:    "List the devices of the running node with their capacities and, for each engine\non them, the KV layouts that were measured at load and the one chosen.\nWithout a node, 'ieg doctor' tells what the host has.",
		Example: "  ieg devices\n  ieg devices --json",
		RunE: func(c *cobra.Command, _ []string) error {
			cl := a.dial()
			ds, err := cl.Devices(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(ds)
			}
			ms, err := cl.Models(c.Context())
			if err != nil {
				return err
			}
			for i, d := range ds {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				a.printDevice(d, ms)
			}
			return nil
		},
	})
}

func (a *app) printDevice(d admin.Device, ms []admin.Model) {
	s := d.Spec
	fmt.Fprintf(a.out, "%s  %s\n", s.ID, deviceName(s))
	fmt.Fprintf(a.out, "  compute   %s fp16, %s int8", known(s.Compute.FP16, "FLOP/s"), known(s.Compute.INT8, "OP/s"))
	if len(s.Compute.Precisions) > 0 {
		fmt.Fprintf(a.out, " (%s)", strings.Join(s.Compute.Precisions, ", "))
	}
	fmt.Fprintf(a.out, "\n  memory    %s at %s, %s free for models\n", size(s.Memory.VRAM), known(s.Memory.Bandwidth, "B/s"), size(d.FreeBytes))
	for _, n := range d.Notes {
		fmt.Fprintf(a.out, "  note      %s\n", n)
	}
	for _, e := range d.Engines {
		m, _ := findModel(ms, e.ID)
		a.printEngine(e, m.PID)
	}
}

// deviceName is what a device is called; most models begin with the vendor.
func deviceName(s ieg.ResourceSpec) string {
	model := strings.Join(strings.Fields(s.Model+" "+s.Series), " ")
	if !strings.HasPrefix(strings.ToLower(model), strings.ToLower(s.Vendor)) {
		model = s.Vendor + " " + model
	}
	return strings.TrimSpace(s.Type + " " + model)
}

func (a *app) printEngine(e ieg.EngineInfo, pid int) {
	fmt.Fprintf(a.out, "  engine %d  %s (%s) by %s, pid %s\n", e.ID, e.Model.Name,
		strings.TrimSpace(e.Model.Arch+" "+e.Model.Quant), e.Library, pidOf(pid))
	fmt.Fprintf(a.out, "    layout  %s, flash attention %s, KV %s; %d slots of %d tokens, %d in all; %d threads\n",
		e.Layout, onOff(e.FlashAttn), e.KVType, e.Slots, e.SlotTokens, e.Cells, e.Threads)
	fmt.Fprintf(a.out, "    memory  %s weights, %s KV, %s compute\n", size(e.WeightBytes), size(e.KVBytes), size(e.ComputeBytes))
	if len(e.Probe) == 0 {
		return
	}
	rows := [][]string{{"    MEASURED", "FLASH", "KV", "DECODE", "PREFILL", ""}}
	for _, p := range e.Probe {
		mark := ""
		if p.Chosen {
			mark = "← chosen"
		}
		rows = append(rows, []string{"    " + p.Layout.String(), onOff(p.FlashAttn), p.KVType,
			fmt.Sprintf("%.0f tok/s", p.DecodeTPS), fmt.Sprintf("%.0f tok/s", p.PrefillTPS), mark})
	}
	_ = table(a.out, rows)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
