package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) recorderCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "recorder", Short: "List and fetch segments of the flight recorder", GroupID: "look", Args: cobra.NoArgs,
		Long:    "The flight recorder keeps the last minutes of what the kernel took in, in\nsegments that each begin with a snapshot. They hold the token ids of users:\nthe node's owner may fetch them whole, others redacted.",
		Example: "  ieg recorder ls\n  ieg recorder get SEGMENT -o segment.rec --redact",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.recorderLsCmd(), a.recorderGetCmd())
	return c
}

func (a *app) recorderLsCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "ls", Short: "List the kept segments", Args: cobra.NoArgs,
		Example: "  ieg recorder ls",
		RunE: func(c *cobra.Command, _ []string) error {
			segs, err := a.dial().Segments(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(segs)
			}
			rows := [][]string{{"SEGMENT", "START", "SIZE", "EVENTS", ""}}
			for _, s := range segs {
				open := ""
				if s.Open {
					open = "open"
				}
				rows = append(rows, []string{s.Name, s.Start.Format(time.DateTime), size(s.Bytes), strconv.FormatInt(s.Events, 10), open})
			}
			return table(a.out, rows)
		},
	})
}

func (a *app) recorderGetCmd() *cobra.Command {
	var file string
	var redact bool
	c := a.client(&cobra.Command{
		Use: "get SEGMENT", Short: "Fetch one segment", Args: cobra.ExactArgs(1),
		Example: "  ieg recorder get SEGMENT -o segment.rec\n  ieg recorder get SEGMENT --redact > segment.rec",
		RunE: func(c *cobra.Command, args []string) (err error) {
			body, err := a.dial().OpenSegment(c.Context(), args[0], redact)
			if err != nil {
				return err
			}
			defer body.Close()
			if file == "" {
				_, err := io.Copy(a.out, body)
				return err
			}
			f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			n, err := io.Copy(f, body)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return fmt.Errorf("%s is incomplete: %w", file, err)
			}
			fmt.Fprintf(a.err, "%s: %s\n", file, size(n))
			return nil
		},
	})
	c.Flags().StringVarP(&file, "output", "o", "", "file to write; it must not exist")
	c.Flags().BoolVar(&redact, "redact", false, "without token ids and bytes of users")
	return c
}
