package sim

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"ieg/kernel/record"
)

// Exit codes of Main.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is "ieg sim": it simulates, or replays a recording, and prints what
// came of it. It returns the exit code: 1 a rule was broken or a replay decided
// otherwise, 2 wrong usage.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "ieg sim: %v\n", err)
		return exitUsage
	}
	if o.replay != "" {
		err = replay(o, stdout)
	} else {
		err = simulate(o, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ieg sim: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func simulate(o *options, stdout io.Writer) error {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	var rec *record.Recorder
	if o.record != "" {
		// One segment, however long; a queue that holds the whole run, since
		// virtual time runs ahead of any writer.
		rec, err = record.New(record.Config{SegmentBytes: 1 << 40, SegmentAge: 1 << 62, Queue: 1 << 22, Build: "ieg sim"})
		if err != nil {
			return err
		}
		cfg.Before, cfg.Observe = rec.Before, rec.Observe
	}
	w, err := New(cfg)
	if err != nil {
		return err
	}
	report, err := w.Run()
	if rec != nil {
		err = errors.Join(err, rec.Close(), saveRecording(rec, o.record))
	}
	if o.json {
		return errors.Join(err, printJSON(stdout, report))
	}
	report.Print(stdout)
	return err
}

// saveRecording writes the only segment of a run to a file.
func saveRecording(rec *record.Recorder, path string) error {
	if n := rec.Lost(); n > 0 {
		return fmt.Errorf("%d events were not recorded: simulate fewer requests", n)
	}
	segs, err := rec.Segments()
	if err != nil || len(segs) != 1 {
		return fmt.Errorf("%d segments were recorded, not 1 (%w)", len(segs), err)
	}
	in, err := rec.Open(segs[0].Name, false)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func replay(o *options, stdout io.Writer) error {
	f, err := os.Open(o.replay)
	if err != nil {
		return err
	}
	defer f.Close()
	rep, err := record.Replay(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", o.replay, err)
		if rep.Events == 0 {
			return err // nothing was read that could be told of
		}
	}
	if o.json {
		return errors.Join(err, printJSON(stdout, rep))
	}
	whole := "whole"
	if !rep.Complete {
		whole = "without an end: it was still being written, or the program stopped"
	}
	fmt.Fprintf(stdout, "segment      by %q, %s", rep.Header.Build, whole)
	if rep.Header.Redacted {
		fmt.Fprint(stdout, ", redacted")
	}
	fmt.Fprintf(stdout, "\nreplayed     %d events, %d reports of steps with %d results, %.1f s of the node's time in %.3f s\n",
		rep.Events, rep.Steps, rep.Tokens, rep.To.Sub(rep.From).Seconds(), rep.Took.Seconds())
	if err == nil {
		fmt.Fprintf(stdout, "decisions    %d compared, all as recorded\n", rep.Judged)
	}
	return err
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
