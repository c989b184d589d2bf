package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ieg/api/admin"
)

const kvLong = `KV is what an engine has computed of a text. It lies in three tiers: the device's
own cells, main memory of this host, and the data folder (nvme). What falls out of
one is found in the next, as long as it is there; a text that comes back, after a
restart too, is not computed again. 'ieg kv' shows how full the tiers are, where
the KV of prompts came from, how fast copies are, and what was not done.`

func (a *app) kvCmd() *cobra.Command {
	status := func(c *cobra.Command, _ []string) error {
		t, err := a.dial().KV(c.Context())
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(t)
		}
		printKV(a.out, &t)
		return nil
	}
	c := a.client(&cobra.Command{
		Use: "kv", Short: "Show and steer the tiers of KV: device, host memory, nvme", GroupID: "look", Args: cobra.NoArgs,
		Long:    kvLong,
		Example: "  ieg kv\n  ieg kv tree -n 10\n  ieg kv pin 3f9a71c2 --for 1h\n  ieg kv drop --tenant alice\n  ieg kv flush",
		RunE:    status,
	})
	c.AddCommand(a.client(&cobra.Command{
		Use: "status", Short: "Show the tiers, as 'ieg kv' does", Args: cobra.NoArgs,
		Example: "  ieg kv status\n  ieg kv status --json | jq .prompt_tokens",
		RunE:    status,
	}), a.kvTreeCmd(), a.kvPinCmd(), a.kvUnpinCmd(), a.kvDropCmd(), a.kvFlushCmd())
	return c
}

func (a *app) kvTreeCmd() *cobra.Command {
	var n int
	c := a.client(&cobra.Command{
		Use: "tree", Short: "List the hottest prefixes below the devices", Args: cobra.NoArgs,
		Long: `List the prefixes that host memory and the data folder hold, the hottest first: a
row for each block where texts part or end. DEPTH is where it ends, in tokens;
TOKENS and SIZE are what hangs on it, since texts parted last; HEAT is its number of
recent uses. MODEL is – where it is not known: for models that aren't loaded, and for
a cache_salt that no request had since the node was started.`,
		Example: "  ieg kv tree\n  ieg kv tree -n 100 --json | jq '.[] | select(.pinned)'",
		RunE: func(c *cobra.Command, _ []string) error {
			if n < 1 || n > admin.KVTreeRowsMax {
				return usagef("-n is %d, not in 1 … %d", n, admin.KVTreeRowsMax)
			}
			rows, err := a.dial().KVTree(c.Context(), n)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.out, "nothing is kept below the devices yet")
				return nil
			}
			return table(a.out, treeRows(rows))
		},
	})
	c.Flags().IntVarP(&n, "rows", "n", admin.KVTreeRows, "number of prefixes")
	return c
}

func treeRows(list []admin.KVPrefix) [][]string {
	rows := [][]string{{"HASH", "DEPTH", "TOKENS", "SIZE", "HEAT", "AGE", "TIERS", "PINNED", "MODEL"}}
	for _, p := range list {
		pinned, more, model := "", "", cmp.Or(p.Model, "–")
		if p.Pinned {
			pinned = "pinned"
		}
		if p.Partial {
			more = "+"
		}
		rows = append(rows, []string{p.Hash.String()[:ShortHashDigits], strconv.Itoa(int(p.Depth)), strconv.FormatInt(p.Tokens, 10) + more, size(p.Bytes) + more,
			fmt.Sprintf("%.2f", p.Heat), ageOf(p.Age), strings.Join(p.Tiers, ","), pinned, model})
	}
	return rows
}

// ageOf is a time span to the second.
func ageOf(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return "now"
	}
	return d.String()
}

func (a *app) kvPinCmd() *cobra.Command {
	p := admin.KVPin{}
	c := a.client(&cobra.Command{
		Use: "pin HASH", Short: "Keep a prefix in the tiers that have it", Args: cobra.ExactArgs(1),
		Long:    "Keep a block and all that leads to it from giving way to others, for a time. HASH\nis the block's, or its first digits, as shown by 'ieg kv tree'. Pins end with the\nnode; a drop ends them, and what is older than kv.ttl goes nevertheless.",
		Example: "  ieg kv pin 3f9a71c2\n  ieg kv pin 3f9a71c2 --for 24h",
		RunE: func(c *cobra.Command, args []string) error {
			if p.Hash = args[0]; p.For < 0 {
				return usagef("--for is %v; 0 is until the node ends", p.For)
			}
			got, err := a.dial().PinKV(c.Context(), p)
			if err != nil || a.json {
				return a.jsonOr(got, err)
			}
			until := "until the node ends"
			if p.For > 0 {
				until = "for " + p.For.String()
			}
			fmt.Fprintf(a.out, "%s: pinned in %s %s\n", got.Hash, strings.Join(got.Tiers, " and "), until)
			return nil
		},
	})
	c.Flags().DurationVar(&p.For, "for", time.Hour, "how long; 0: until the node ends")
	return c
}

// jsonOr prints an answer as JSON unless there is an error.
func (a *app) jsonOr(v any, err error) error {
	if err != nil {
		return err
	}
	return a.printJSON(v)
}

func (a *app) kvUnpinCmd() *cobra.Command {
	return a.client(&cobra.Command{
		Use: "unpin HASH", Short: "End the pins of a prefix", Args: cobra.ExactArgs(1),
		Example: "  ieg kv unpin 3f9a71c2",
		RunE: func(c *cobra.Command, args []string) error {
			got, err := a.dial().UnpinKV(c.Context(), admin.KVPin{Hash: args[0]})
			if err != nil || a.json {
				return a.jsonOr(got, err)
			}
			fmt.Fprintf(a.out, "%s: no longer pinned\n", got.Hash)
			return nil
		},
	})
}

func (a *app) kvDropCmd() *cobra.Command {
	var tenant string
	var d admin.KVDrop
	var yes bool
	c := a.client(&cobra.Command{
		Use: "drop {--tenant SALT | --all}", Short: "Forget the KV of a tenant, or all", Args: cobra.NoArgs,
		Long: `Forget KV in every tier: on the devices, in host memory and in the data folder.
A tenant is the cache_salt of requests; --tenant '' is the common one, of requests
without a salt. What running requests use goes once they end. The KV of models that
are not loaded is forgotten by --all only.`,
		Example: "  ieg kv drop --tenant alice\n  ieg kv drop --all --yes",
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("tenant") {
				d.Tenant = &tenant
			}
			if d.All == (d.Tenant != nil) {
				return usagef("name either a tenant by --tenant, or --all; see 'ieg kv drop --help'")
			}
			if d.All && !yes && !a.agreed("forget all KV of all tenants?") {
				return usagef("nothing was dropped; say --yes to drop all")
			}
			got, err := a.dial().DropKV(c.Context(), d)
			if err != nil || a.json {
				return a.jsonOr(got, err)
			}
			fmt.Fprintf(a.out, "dropped %s of host memory, %d of nvme (%s), and what the devices held\n", count(int64(got.HostBlocks), "block"), got.NVMeBlocks, size(got.NVMeBytes))
			return nil
		},
	})
	f := c.Flags()
	f.StringVar(&tenant, "tenant", "", "the cache_salt of the requests whose KV is forgotten")
	f.BoolVar(&d.All, "all", false, "forget the KV of all tenants and models")
	f.BoolVar(&yes, "yes", false, "don't ask")
	return c
}

// agreed asks people; where nobody can be asked the answer is no.
func (a *app) agreed(question string) bool {
	if a.json || !isTerminal(a.in) || !isTerminal(a.err) {
		return false
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes")
}

func (a *app) kvFlushCmd() *cobra.Command {
	var f admin.KVFlush
	c := a.client(&cobra.Command{
		Use: "flush", Short: "Wait until what was computed is saved", Args: cobra.NoArgs,
		Long:    "Wait until all KV that can be saved lies in host memory, and in the data folder\ntoo. The node saves by itself; this only waits, for example before a host is\nswitched off. Ends with code 1, and says what and why, if something is not in\nthe data folder then.",
		Example: "  ieg kv flush\n  ieg kv flush --timeout 5m",
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Within <= 0 || f.Within > admin.KVFlushMax {
				return usagef("--timeout is %v; up to %v are possible", f.Within, admin.KVFlushMax)
			}
			got, err := a.dial().FlushKV(c.Context(), f)
			if err != nil {
				return err
			}
			return a.flushed(&got)
		},
	})
	c.Flags().DurationVar(&f.Within, "timeout", time.Minute, "longest wait")
	return c
}

// flushed prints what a flush did; it fails if something is not on the disk.
func (a *app) flushed(f *admin.KVFlushed) error {
	if a.json {
		err := a.printJSON(f)
		if err == nil && !f.Done() {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	fmt.Fprintf(a.out, "flushed in %s: %s to host memory, %s to nvme\n", span(f.Took), size(f.Saved), size(f.Stored))
	if !f.Done() {
		return errors.New(notFlushed(f))
	}
	if f.Note != "" {
		fmt.Fprintf(a.out, "nothing is left to be written; %s\n", f.Note)
	}
	return nil
}

// notFlushed says what is not on the disk, and why.
func notFlushed(f *admin.KVFlushed) string {
	var what []string
	if f.Left > 0 {
		what = append(what, fmt.Sprintf("%s (%s) of host memory", count(int64(f.Left), "block"), size(f.LeftBytes)))
	}
	if f.HostFull {
		what = append(what, "what the devices hold and host memory has no room for")
	}
	return "not on the disk: " + strings.Join(what, ", and ") + ": " + f.Note
}
