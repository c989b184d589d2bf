package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ieg/api/admin"
)

// version is set by the linker for releases.
var version = "dev"

func ownVersion() admin.Version {
	v := admin.Version{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return v
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", GroupID: "host", Args: cobra.NoArgs,
		Example: "  ieg version\n  ieg version --json",
		RunE: func(*cobra.Command, []string) error {
			v := ownVersion()
			if a.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintln(a.out, "ieg", v.Version, v.Commit, v.Go)
			return err
		},
	}
}
