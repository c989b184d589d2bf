package main

import (
	"slices"

	"github.com/spf13/cobra"

	"ieg/bench/sim"
)

func (a *app) simCmd() *cobra.Command {
	return &cobra.Command{
		Use: "sim [FLAGS]", Short: "Simulate the kernel, or replay a recording of it", GroupID: "host",
		Long: `Run the kernel that is shipped under a virtual clock, with synthetic engines and
made-up or traced requests; or run a segment of the flight recorder again and
compare what the kernel decides. Needs no node, no model and no file.

Exit codes: 0 done; 1 a rule was broken, or the replay decided otherwise;
2 wrong usage.`,
		Example:            "  ieg sim --requests 500 --rate 4\n  ieg sim --trace trace.jsonl.gz --engines 4\n  ieg sim --replay segment.iegrec",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				if err := c.Help(); err != nil {
					return err
				}
				sim.Main([]string{"-h"}, a.out, a.out)
				return nil
			}
			if code := sim.Main(args, a.out, a.err); code != exitOK {
				return &exitError{code: code}
			}
			return nil
		},
	}
}
