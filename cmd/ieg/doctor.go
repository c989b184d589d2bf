package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ieg/cmd/ieg/config"
)

// check is one thing that doctor looked at.
type check struct {
	What  string `json:"what"`
	Found string `json:"found"`
	// State is "ok", "note" (works without it) or "bad".
	State string `json:"state"`
	Do    string `json:"do,omitempty"`
}

func (a *app) doctorCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Tell what this host has, what it lacks, and what to do", GroupID: "host", Args: cobra.NoArgs,
		Long:    "Look at what a node needs: processor, memory, limits, the engine's libraries,\ndevices, models, folders, ports and a running node. Ends with code 1 if\nsomething that is needed is missing.",
		Example: "  ieg doctor\n  ieg doctor --config ieg.yaml --json",
	}
	flags := config.Register(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		e, err := flags.Load()
		if err != nil {
			return err
		}
		checks := examine(c.Context(), e)
		bad := 0
		for _, k := range checks {
			if k.State == "bad" {
				bad++
			}
		}
		if a.json {
			if err := a.printJSON(checks); err != nil {
				return err
			}
		} else {
			a.printChecks(checks)
		}
		if bad > 0 {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

func (a *app) printChecks(checks []check) {
	marks := map[string]string{"ok": "✓", "note": "·", "bad": "✗"}
	for _, k := range checks {
		fmt.Fprintf(a.out, "%s %-14s %s\n", marks[k.State], k.What, k.Found)
		if k.Do != "" {
			fmt.Fprintf(a.out, "  %-14s → %s\n", "", k.Do)
		}
	}
}
