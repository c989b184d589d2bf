package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"ieg/bench/report"
)

// group measures rows that share their set-up.
type group struct {
	name string
	help string
	run  func(context.Context, *Env) ([]report.Row, error)
	rows []string // what it gives, for a group that fails before it measures
}

// groups in the order in which they run.
var groups = []group{
	{"kernel", "time in the kernel per step, 256 running sequences", kernelStep, []string{"kernel-step", "kernel-allocs"}},
	{"place", "joint placement of a 10-node graph over 64 and 1,000 devices", placement, []string{"place-64", "place-1000", "place-cost"}},
	{"start", "start to first token", startUp, []string{"start", "start-seconds"}},
	{"decode", "decode through the API against the raw loop", decode, []string{"decode-1", "decode-4", "decode-8", "decode-16"}},
	{"decode-long", "the same with 2,000 tokens of context in each of 8 streams", decodeLong, []string{"decode-8-2000"}},
	{"prefill", "prefill through the API against the raw loop", prefill, []string{"prefill-512", "prefill-2048"}},
	{"sampling", "sampled and schema-bound streams against greedy ones", sampling, []string{"top-p-16", "json-schema-16"}},
	{"chats", "concurrent chats of unlike lengths against llama-server", chats, []string{"chats-8", "chats-16"}},
	{"long-prompt", "a 4,000-token prompt among seven running chats", longPrompt, []string{"long-prompt-gap", "long-prompt-ttft", "long-prompt-rate"}},
	{"shared", "64 chats that share a system prompt", shared, []string{"shared-ttft", "shared-prefill"}},
	{"cancel", "the engine's work for a client that is gone", cancelled, []string{"cancel"}},
	{"kv-chats", "conversations that the device has no room for, against llama-server", kvChats,
		[]string{"kv-host-ttft", "kv-host-rate", "kv-prefilled", "kv-nvme-ttft", "kv-restart-ttft", "kv-restart-warm"}},
	{"kv-itl", "gaps of running chats while blocks are copied", kvITL, []string{"kv-itl-p99", "kv-itl-p50", "kv-longest-copy"}},
	{"kv-bring", "bringing 2,000 tokens back against the library's import", kvBring, []string{"kv-bring-host", "kv-bring-nvme"}},
	{"kv-disk", "blocks to the NVMe tier and back against a plain program", kvDisk, []string{"kv-disk-write", "kv-disk-read"}},
	{"kv-index", "the prefix index with a million blocks", kvIndex, []string{"kv-index-lookup", "kv-index-bytes", "kv-index-pause", "kv-index-start"}},
	{"kv-int8", "the int8 codec of KV: its speed, and what it changes", kvInt8,
		[]string{"kv-int8-encode", "kv-int8-decode", "kv-int8-stream-encode", "kv-int8-stream-decode", "kv-int8-kl", "kv-int8-ppl"}},
	{"memory", "memory of the node at 250 streams, of the child beside weights and KV", memory, []string{"memory-node", "memory-child"}},
}

const usage = `Measures ieg against its limits and peers. Servers run one at a time under load,
ours and theirs in turn, medians over rounds.

  ieg bench                     all groups; rows go to bench/results.json
  ieg bench --row decode        one group (or a row's name)
  ieg bench --full              large forms: more rounds
  ieg bench --soak              10 minutes of misuse and engine kills
  ieg bench --kv-day --trace F  recorded sessions, and which tier had their KV
  ieg bench --table             the last rows as a Markdown table
  ieg bench --list              names

Exit status: 0 every row holds its bound or names what bounds it, 1 one misses,
2 wrong use, 3 one could not be measured.
`

// Main is the command line; it returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("ieg bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage); fs.PrintDefaults() }
	only := fs.String("row", "", "a group's or a row's `NAME`")
	full := fs.Bool("full", false, "the large forms")
	soakRun := fs.Bool("soak", false, "clients, cancels, bad bodies and engine kills")
	minutes := fs.Int("minutes", 10, "length of the soak")
	rawOnly := fs.Bool("raw-memory", false, "run the raw loop in this process and print its memory (used by the memory row)")
	dayRun := fs.Bool("kv-day", false, "recorded sessions in a fraction of their length and time")
	trace := fs.String("trace", "", "`FILE` of recorded sessions for --kv-day: gzipped JSON lines")
	table := fs.Bool("table", false, "print the rows of --out as a Markdown table")
	asJSON := fs.Bool("json", false, "print each row, or the list, as JSON")
	list := fs.Bool("list", false, "list the groups and their rows")
	out := fs.String("out", "bench/results.json", "`FILE` for the rows; empty writes none")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if *list {
		printList(stdout, *asJSON)
		return 0
	}
	if *table {
		return printTable(*out, stdout, stderr)
	}
	chosen := choose(*only)
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "ieg bench: no group or row is named %q; see ieg bench --list\n", *only)
		return 2
	}
	env, err := NewEnv(stderr)
	if err != nil {
		fmt.Fprintf(stderr, "ieg bench: %v\n", err)
		return 3
	}
	defer env.Close()
	env.JSON, env.Whole = *asJSON, *only != "" || *full
	if *full {
		env.Full, env.Rounds = true, 3*Rounds
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *rawOnly:
		return special(stderr, 3, holdRaw(env, stdout))
	case *dayRun:
		if *trace == "" {
			fmt.Fprintln(stderr, "ieg bench: --kv-day needs --trace FILE")
			return 2
		}
		return special(stderr, 3, kvDay(ctx, env, *trace, stdout))
	case *soakRun:
		err := soak(ctx, env, time.Duration(*minutes)*time.Minute, stdout)
		if err == nil {
			fmt.Fprintln(stdout, "soak: nothing wrong")
		}
		return special(stderr, 1, err)
	}
	return runGroups(ctx, env, chosen, *out, stdout, stderr)
}

// special ends a run of something else than rows; status is that of a failure.
func special(stderr io.Writer, status int, err error) int {
	if err != nil {
		fmt.Fprintf(stderr, "ieg bench: %v\n", err)
		return status
	}
	return 0
}

func printList(w io.Writer, asJSON bool) {
	for _, g := range groups {
		if asJSON {
			_ = json.NewEncoder(w).Encode(map[string]any{"group": g.name, "what": g.help, "rows": g.rows})
			continue
		}
		fmt.Fprintf(w, "%-12s %s\n             rows: %s\n", g.name, g.help, strings.Join(g.rows, ", "))
	}
}

// printTable writes the rows of a file as Markdown.
func printTable(path string, stdout, stderr io.Writer) int {
	rows, err := report.Read(path)
	if err == nil {
		err = report.Table(stdout, rows)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ieg bench: %v\n", err)
		return 3
	}
	return 0
}

func choose(name string) []group {
	if name == "" {
		return groups
	}
	return slices.DeleteFunc(slices.Clone(groups), func(g group) bool {
		return g.name != name && !slices.Contains(g.rows, name)
	})
}

func runGroups(ctx context.Context, env *Env, chosen []group, out string, stdout, stderr io.Writer) int {
	status := 0
	for _, g := range chosen {
		fmt.Fprintf(stderr, "%s: %s\n", g.name, g.help)
		started := time.Now()
		rows := measure(ctx, env, g)
		env.logf("      %s took %.0f s", g.name, time.Since(started).Seconds())
		for _, r := range rows {
			if env.JSON {
				_ = json.NewEncoder(stdout).Encode(r)
			} else {
				fmt.Fprintln(stdout, r.Line())
			}
			switch {
			case r.Error != "":
				status = 3
			case !r.OK && r.BoundBy == "":
				status = max(status, 1)
			}
		}
		if out != "" {
			if err := report.Write(out, rows); err != nil {
				fmt.Fprintf(stderr, "ieg bench: %v\n", err)
				return 3
			}
		}
		if ctx.Err() != nil {
			return 3
		}
	}
	return status
}

// measure runs one group and fills in rows that it did not reach.
func measure(ctx context.Context, env *Env, g group) []report.Row {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(env.long())*GroupTimeout)
	defer cancel()
	rows, err := g.run(ctx, env)
	for i := range rows {
		rows[i].Command = "make bench-" + g.name
		if rows[i].Rounds == 0 && rows[i].Error == "" {
			rows[i].Error = "not measured"
			if err != nil {
				rows[i].Error = err.Error()
			}
		}
	}
	for _, name := range g.rows {
		if !slices.ContainsFunc(rows, func(r report.Row) bool { return r.Name == name }) {
			r := report.Row{Name: name, Command: "make bench-" + g.name, Error: "not measured"}
			if err != nil {
				r.Error = err.Error()
			}
			rows = append(rows, r)
		}
	}
	return rows
}
