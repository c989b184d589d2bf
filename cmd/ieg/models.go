package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/config"
)

func (a *app) modelsCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "models", Short: "List, load and unload models", GroupID: "node", Args: cobra.NoArgs,
		Example: "  ieg models ls\n  ieg models load chat=model.gguf\n  ieg models unload chat",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.modelsLsCmd(), a.modelsLoadCmd(), a.modelsUnloadCmd())
	return c
}

func (a *app) modelsLsCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the models of the node", Args: cobra.NoArgs,
		Example: "  ieg models ls\n  ieg models ls --json",
		RunE: func(c *cobra.Command, _ []string) error {
			ms, err := a.dial().Models(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(ms)
			}
			rows := [][]string{{"MODEL", "STATE", "DEVICE", "CONTEXT", "SLOTS", "PARAMS", "WEIGHTS", "QUANT", "PID", "ALIASES", "KV BELOW THE DEVICE"}}
			for _, m := range ms {
				state := m.State
				if state == string(ieg.EngineLoading) {
					state += fmt.Sprintf(" %.0f%%", m.Loading*100)
				}
				if m.Reason != "" {
					state += ": " + m.Reason
				}
				rows = append(rows, []string{m.Name, cut(state, StateColumnsMax), m.Device, strconv.Itoa(int(m.Context)), strconv.Itoa(int(m.Slots)),
					scaled(float64(m.Params), ""), size(m.WeightBytes), m.Quant, pidOf(m.PID), strings.Join(m.Aliases, ","), kvOf(m)})
			}
			return table(a.out, rows)
		},
	})
}

func (a *app) modelsLoadCmd() *cobra.Command {
	m := admin.LoadModel{}
	var noWait bool
	c := a.client(&cobra.Command{
		Use: "load [NAME[,ALIAS…]=]FILE", Short: "Load a model into the running node", Args: cobra.ExactArgs(1),
		Long:    "Load a model into the running node and wait until it is ready. What it needs is\nchecked against the device's free memory first.",
		Example: "  ieg models load model.gguf\n  ieg models load chat,gpt-4o=model.gguf --ctx 8192 --slots 16",
		RunE: func(c *cobra.Command, args []string) error {
			p := config.ParseModel(args[0])
			m.Path, m.Name, m.Aliases = p.Path, p.Name, p.Aliases
			if !config.IsSynth(m.Path) {
				// The node has a working folder of its own.
				abs, err := filepath.Abs(m.Path)
				if err != nil {
					return err
				}
				m.Path = abs
			}
			return a.loadModel(c.Context(), m, noWait)
		},
	})
	f := c.Flags()
	f.Int32Var(&m.Context, "ctx", 0, "tokens of context; 0: sized to memory")
	f.Int32Var(&m.Slots, "slots", 0, "sequences held at once; 0: by default")
	f.IntVar(&m.Threads, "threads", 0, "cores granted; 0: all but one")
	f.StringVar(&m.KVType, "kv-type", "f16", "type of KV elements: f16, q8_0 …")
	f.StringVar(&m.Layout, "layout", "auto", "KV layout: auto (measured), unified or streams")
	f.StringVar(&m.FlashAttn, "flash-attention", "auto", "auto, on or off")
	f.StringVar(&m.Device, "device", "", "device, as shown by 'ieg devices'")
	f.BoolVar(&m.Embedding, "embedding", false, "serve vectors even if the model generates")
	f.BoolVar(&noWait, "no-wait", false, "return once the model was admitted")
	return c
}

func (a *app) loadModel(ctx context.Context, m admin.LoadModel, noWait bool) error {
	cl := a.dial()
	got, err := cl.LoadModel(ctx, m)
	if err != nil {
		return err
	}
	bar := newProgress(a.err, "loading "+got.Name)
	defer bar.done()
	tick := time.NewTicker(LoadPollEvery)
	defer tick.Stop()
	for !noWait {
		ms, err := cl.Models(ctx)
		if err != nil {
			return err
		}
		now, ok := findModel(ms, got.Engine)
		switch {
		case !ok:
			return fmt.Errorf("%w: %q was unloaded meanwhile", ieg.ErrNoModel, got.Name)
		case now.State == string(ieg.EngineUp):
			got, noWait = now, true
		case now.State == string(ieg.EngineDown):
			return fmt.Errorf("%q can't be loaded: %s", got.Name, now.Reason)
		default:
			bar.show(now.Loading)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}
	bar.done()
	if a.json {
		return a.printJSON(got)
	}
	fmt.Fprintf(a.out, "%s: %s, %d slots of %d tokens on %s\n", got.Name, got.State, got.Slots, got.Context, got.Device)
	return nil
}

func findModel(ms []admin.Model, id ieg.EngineID) (admin.Model, bool) {
	for _, m := range ms {
		if m.Engine == id {
			return m, true
		}
	}
	return admin.Model{}, false
}

func (a *app) modelsUnloadCmd() *cobra.Command {
	var force bool
	c := a.client(&cobra.Command{
		Use: "unload NAME", Aliases: []string{"rm"}, Short: "Unload a model once it is idle", Args: cobra.ExactArgs(1),
		Long:    "Unload a model: it takes no new requests, finishes what runs, and gives its\nmemory back. With --force what runs is failed.",
		Example: "  ieg models unload chat\n  ieg models unload chat --force",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.dial().UnloadModel(c.Context(), admin.UnloadModel{Name: args[0], Force: force}); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"unloaded": args[0]})
			}
			fmt.Fprintf(a.out, "%s: unloaded\n", args[0])
			return nil
		},
	})
	c.Flags().BoolVar(&force, "force", false, "fail what runs instead of waiting for it")
	return c
}

// kvOf tells whether a model's KV can leave its device, once that is known.
func kvOf(m admin.Model) string {
	if m.KVToken == 0 && m.KVNote == "" {
		return "–"
	}
	return leaves(m.KVToken, m.KVNote)
}

func pidOf(pid int) string {
	if pid == 0 {
		return "–"
	}
	return strconv.Itoa(pid)
}
