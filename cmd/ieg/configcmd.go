package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ieg/api/admin"
	"ieg/cmd/ieg/config"
)

func (a *app) configCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Print the effective configuration and where each value came from", GroupID: "host", Args: cobra.NoArgs,
		Long: `Print the configuration that 'ieg up' with the same flags would run with, as YAML
that --config takes, with the source of each value: default, FILE:LINE, env NAME
or flag --NAME. Flags override the environment (IEG_LISTEN for --listen and so
on), which overrides the file, which overrides the defaults.`,
		Example: "  ieg config --config ieg.yaml --max-queue 64\n  ieg config > ieg.yaml\n  ieg config --running",
	}
	var running bool
	c.Flags().BoolVar(&running, "running", false, "ask the running node instead")
	flags := config.Register(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if running {
			if f := c.Flags().Lookup("admin"); f.Changed {
				a.socket = f.Value.String()
			}
			got, err := a.dial().Config(c.Context())
			if err != nil {
				return err
			}
			return a.printConfig(got)
		}
		e, err := flags.Load()
		if err != nil {
			return err
		}
		return a.printConfig(wireConfig(e))
	}
	return c
}

func wireConfig(e *config.Effective) admin.Config {
	c := admin.Config{YAML: e.YAML()}
	for _, v := range e.Values() {
		c.Values = append(c.Values, admin.ConfigValue{Path: v.Path, Value: v.Value, Source: v.Source})
	}
	return c
}

func (a *app) printConfig(c admin.Config) error {
	if a.json {
		return a.printJSON(c.Values)
	}
	_, err := fmt.Fprint(a.out, c.YAML)
	return err
}
