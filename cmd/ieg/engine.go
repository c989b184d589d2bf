package main

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"ieg/cmd/ieg/backend"
	"ieg/cmd/ieg/config"
	"ieg/devices/engine"
	"ieg/devices/engine/lib"
	"ieg/devices/engine/llama"
	arena "ieg/memory/tier/host"
)

func (a *app) engineCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "engine", Short: "List and fetch builds of the engine's library", GroupID: "host", Args: cobra.NoArgs,
		Example: "  ieg engine ls\n  ieg engine add vulkan",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	serve := &cobra.Command{
		Use: "serve", Short: "Run one engine for a node, on descriptors 3 to 5", Hidden: true, Args: cobra.NoArgs,
		Example: "  ieg up starts it",
		RunE: func(*cobra.Command, []string) error {
			if code := engine.Main(loaders, openArena); code != exitOK {
				return &exitError{code: code}
			}
			return nil
		},
	}
	list := &cobra.Command{
		Use: "devices DIR", Short: "Print the devices that the libraries in a folder find", Hidden: true, Args: cobra.ExactArgs(1),
		Example: "  ieg up and ieg doctor start it",
		RunE: func(_ *cobra.Command, args []string) error {
			ds, err := llama.Devices(args[0])
			if err != nil {
				return err
			}
			return a.printJSON(ds)
		},
	}
	c.AddCommand(a.engineLsCmd(), a.engineAddCmd(), serve, list)
	return c
}

// openArena maps the node's arena in a child.
func openArena(fd uintptr, bytes int64, pageBytes int) (engine.Arena, error) {
	a, err := arena.Open(fd, bytes, pageBytes)
	if err != nil {
		return nil, err // a nil *arena.Arena is no nil engine.Arena
	}
	return a, nil
}

// cacheFlag adds --cache-dir and returns where its value will be.
func cacheFlag(c *cobra.Command) *string {
	return c.Flags().String("cache-dir", config.Default().CacheDir, "folder for fetched libraries and models")
}

type engineRow struct {
	backend.Backend
	Installed bool   `json:"installed"`
	Embedded  bool   `json:"embedded,omitempty"`
	Dir       string `json:"dir,omitempty"`
	Version   string `json:"version"`
}

func (a *app) engineLsCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the builds and which are here", Args: cobra.NoArgs,
		Example: "  ieg engine ls\n  ieg engine ls --json",
	}
	cache := cacheFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		var rows []engineRow
		for _, b := range backend.All() {
			r := engineRow{Backend: b, Installed: b.Installed(*cache), Version: lib.Version}
			if r.Installed {
				r.Dir = b.Dir(*cache)
			}
			r.Embedded = b.Name == "cpu" && lib.Embedded()
			rows = append(rows, r)
		}
		if a.json {
			return a.printJSON(rows)
		}
		out := [][]string{{"ENGINE", "HERE", "FOR", "NEEDS"}}
		for _, r := range rows {
			here := "no: ieg engine add " + r.Name
			switch {
			case r.Installed:
				here = "yes"
			case r.Embedded:
				here = "yes, in this program"
			}
			out = append(out, []string{"llama.cpp " + r.Version + " " + r.Name, here, r.For, r.Needs})
		}
		return table(a.out, out)
	}
	return c
}

func (a *app) engineAddCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "add NAME", Short: "Fetch a build, pinned by checksum", Args: cobra.ExactArgs(1),
		Long:    "Fetch a build of the engine's library with npm, check it against the pinned\nchecksum and put it into the cache. A running node sees it after a restart.",
		Example: "  ieg engine add vulkan\n  ieg engine add cuda",
	}
	cache := cacheFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := backend.Find(args[0])
		if err != nil {
			return usagef("%v", err)
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
		defer stop()
		dir, err := b.Add(ctx, *cache, func(line string) { fmt.Fprintln(a.err, line) })
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(engineRow{Backend: b, Installed: true, Dir: dir, Version: lib.Version})
		}
		fmt.Fprintf(a.out, "%s: %s\n", b.Name, dir)
		if b.Needs != "" {
			fmt.Fprintf(a.out, "it needs %s; 'ieg doctor' checks\n", b.Needs)
		}
		return nil
	}
	return c
}
