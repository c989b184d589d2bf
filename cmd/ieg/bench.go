package main

import (
	"slices"

	"github.com/spf13/cobra"

	"ieg/bench"
)

func (a *app) benchCmd() *cobra.Command {
	return &cobra.Command{
		Use: "bench [FLAGS]", Short: "Measure this program against its limits and peers", GroupID: "host",
		Long: `Measure this program against its limits and peers; 'ieg bench --list' names the
rows, 'ieg bench --help' the flags.

Exit codes: 0 every row holds its bound or names what bounds it; 1 one misses;
2 wrong usage; 3 one could not be measured.`,
		Example:            "  ieg bench --list\n  ieg bench --row decode",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				if err := c.Help(); err != nil {
					return err
				}
				bench.Main([]string{"-h"}, a.out, a.out)
				return nil
			}
			if code := bench.Main(args, a.out, a.err); code != exitOK {
				return &exitError{code: code}
			}
			return nil
		},
	}
}
