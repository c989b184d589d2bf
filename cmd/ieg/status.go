package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
)

func (a *app) statusCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "status", Short: "Show engines, queues and totals", GroupID: "look", Args: cobra.NoArgs,
		Example: "  ieg status\n  ieg status --json | jq .engines[0].running",
		RunE: func(c *cobra.Command, _ []string) error {
			cl := a.dial()
			st, err := cl.Status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(st)
			}
			v, err := cl.Version(c.Context())
			if err != nil {
				return err
			}
			deaths, err := cl.Deaths(c.Context())
			if err != nil {
				return err
			}
			kv, err := cl.KV(c.Context())
			if err != nil {
				return err
			}
			printStatus(a.out, st, v, &kv, deaths)
			return nil
		},
	})
}

func printStatus(w io.Writer, st ieg.Status, v admin.Version, kv *admin.KVTiers, deaths []admin.Death) {
	state := "serving"
	if st.Draining {
		state = "draining"
	}
	fmt.Fprintf(w, "%s on %s for %s (pid %d, %s)\n\n", state, v.Listen, time.Since(v.Started).Round(time.Second), v.PID, v.Version)
	printEngines(w, st.Engines)
	t := st.Totals
	fmt.Fprintf(w, "\nrequests  %d arrived, %d finished, %d failed, %d cancelled, %d rejected\n", t.Requests, t.Finished, t.Failed, t.Cancelled, t.Rejected)
	fmt.Fprintf(w, "tokens    %d prompt (%d cached), %d generated\n", t.PromptTokens, t.CachedTokens, t.GeneratedTokens)
	fmt.Fprintf(w, "steps     %d, %d preemptions, %d engine deaths\n", t.Steps, t.Preemptions, t.EngineDeaths)
	fmt.Fprintf(w, "KV        %s\n", kvLine(kv))
	for i, d := range deaths {
		if i == 3 {
			fmt.Fprintf(w, "  … %d more; see ieg status --json\n", len(deaths)-i)
			break
		}
		fmt.Fprintf(w, "  %s  %s: %s\n", d.At.Format(time.TimeOnly), d.Model, d.Reason)
	}
}

func printEngines(w io.Writer, engines []ieg.EngineStatus) {
	rows := [][]string{{"MODEL", "DEVICE", "STATE", "RUNNING", "WAITING", "SLOTS", "KV TOKENS", "PREFILL", "STEP"}}
	for _, e := range engines {
		state := string(e.State)
		if e.Reason != "" {
			state += ": " + e.Reason
		}
		rows = append(rows, []string{e.Info.Model.Name, e.Info.Device, state, strconv.Itoa(e.Running), strconv.Itoa(e.Waiting),
			fmt.Sprintf("%d+%d/%d", e.SlotsUsed, e.SlotsIdle, e.Info.Slots),
			fmt.Sprintf("%d+%d/%d", e.CellsUsed, e.CellsIdle, e.Info.Cells),
			fmt.Sprintf("%.0f tok/s", e.PrefillTPS), span(e.StepTime)})
	}
	if len(rows) == 1 {
		fmt.Fprintln(w, "no models; load one by 'ieg models load FILE'")
		return
	}
	_ = table(w, rows)
}

func (a *app) psCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "ps", Short: "List running and waiting requests", GroupID: "look", Args: cobra.NoArgs,
		Example: "  ieg ps\n  ieg ps --json",
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := a.dial().Status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				if st.Requests == nil {
					st.Requests = []ieg.RequestRow{}
				}
				return a.printJSON(st.Requests)
			}
			return table(a.out, requestRows(st.Requests))
		},
	})
}

func requestRows(rs []ieg.RequestRow) [][]string {
	rows := [][]string{{"ID", "NAME", "MODEL", "CLASS", "STATE", "PROMPT", "CACHED", "GENERATED", "AGE"}}
	for _, r := range rs {
		rows = append(rows, []string{r.ID.String(), r.Name, r.Model, r.Class.String(), r.State,
			strconv.Itoa(int(r.Prompt)), strconv.Itoa(int(r.Cached)), strconv.Itoa(int(r.Generated)), span(r.Age)})
	}
	return rows
}

func (a *app) topCmd() *cobra.Command {
	var once bool
	c := a.client(&cobra.Command{
		Use: "top", Short: "Watch engines and requests", GroupID: "look", Args: cobra.NoArgs,
		Long:    "Watch engines and requests, once a second. Where the output is no terminal,\none picture over one second is printed.",
		Example: "  ieg top\n  ieg top --once",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.top(c.Context(), once || a.json || !isTerminal(a.out))
		},
	})
	c.Flags().BoolVar(&once, "once", false, "print one picture and end")
	return c
}

// rates are what happened between two looks.
type rates struct {
	Seconds    float64 `json:"seconds"`
	Prompt     float64 `json:"prompt_tokens_per_s"`
	Generated  float64 `json:"generated_tokens_per_s"`
	Steps      float64 `json:"steps_per_s"`
	Finished   float64 `json:"finished_per_s"`
	ieg.Status `json:"status"`
}

func between(was, is ieg.Status) rates {
	r := rates{Seconds: is.Now.Sub(was.Now).Seconds(), Status: is}
	if r.Seconds <= 0 {
		return r
	}
	per := func(a, b int64) float64 { return float64(b-a) / r.Seconds }
	r.Prompt = per(was.Totals.PromptTokens-was.Totals.CachedTokens, is.Totals.PromptTokens-is.Totals.CachedTokens)
	r.Generated = per(was.Totals.GeneratedTokens, is.Totals.GeneratedTokens)
	r.Steps = per(was.Totals.Steps, is.Totals.Steps)
	r.Finished = per(was.Totals.Finished, is.Totals.Finished)
	return r
}

func (a *app) top(ctx context.Context, once bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	cl := a.dial()
	v, err := cl.Version(ctx)
	if err != nil {
		return err
	}
	was, err := cl.Status(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(TopEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		is, err := cl.Status(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		r := between(was, is)
		if a.json {
			return a.printJSON(r)
		}
		if !once {
			fmt.Fprint(a.out, "\x1b[H\x1b[2J")
		}
		fmt.Fprintf(a.out, "up %s   %.0f tok/s prompt   %.0f tok/s generated   %.0f steps/s   %.1f requests/s\n\n",
			time.Since(v.Started).Round(time.Second), r.Prompt, r.Generated, r.Steps, r.Finished)
		printEngines(a.out, is.Engines)
		fmt.Fprintln(a.out)
		if err := table(a.out, requestRows(is.Requests)); err != nil || once {
			return err
		}
		was = is
	}
}
