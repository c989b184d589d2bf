package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/config"
)

// The exit codes; doc.go and the help of "ieg" explain them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotRunning  = 3
	exitRefused     = 4
	exitNotFound    = 5
	exitInterrupted = 130
)

func main() { os.Exit(program(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// app is what every command shares.
type app struct {
	in       io.Reader
	out, err io.Writer
	json     bool
	socket   string
}

// program is the whole program; it returns the exit code.
func program(args []string, in io.Reader, out, errOut io.Writer) int {
	printed := &printout{to: out}
	a := &app{in: in, out: printed, err: errOut}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(printed)
	root.SetErr(errOut)
	err := root.ExecuteContext(context.Background())
	if err == nil && printed.err != nil {
		err = fmt.Errorf("the output is incomplete: %w", printed.err)
	}
	if err == nil {
		return exitOK
	}
	var own *exitError
	silent := errors.As(err, &own) && own.err == nil
	// Who presses Ctrl-C knows why the program ends.
	if !silent && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(errOut, "ieg: %s\n", strings.TrimSpace(err.Error()))
	}
	return exitCode(err)
}

// exitError carries an exit code of its own; without err nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// errUsage marks wrong arguments.
var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var own *exitError
	if errors.As(err, &own) {
		return own.code
	}
	for _, row := range []struct {
		is   error
		code int
	}{
		{config.ErrConfig, exitUsage},
		{errUsage, exitUsage},
		{admin.ErrInvalid, exitUsage},
		{admin.ErrNotRunning, exitNotRunning},
		{admin.ErrAlreadyRunning, exitRefused},
		{admin.ErrPermission, exitRefused},
		{ieg.ErrBusy, exitRefused},
		{ieg.ErrDraining, exitRefused},
		{admin.ErrNotFound, exitNotFound},
		{ieg.ErrNoModel, exitNotFound},
		{context.Canceled, exitInterrupted},
	} {
		if errors.Is(err, row.is) {
			return row.code
		}
	}
	return exitFailed
}

const rootLong = `ieg serves language models on this host through an OpenAI-compatible API.
Every request is a graph of stages that the kernel places on devices, batches
and can explain.

Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 no node is
running; 4 refused (already running, busy, draining, not permitted); 5 not
found (model, request, segment); 130 interrupted.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "ieg",
		Short:         "Serve language models as graphs of stages",
		Long:          rootLong,
		Example:       "  ieg up --model model.gguf     serve a model on 127.0.0.1:9430\n  ieg chat 'Why is the sky blue?'\n  ieg explain r1                how the first request was placed, and why",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print data as JSON")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%v; see '%s --help'", err, c.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "node", Title: "The node:"},
		&cobra.Group{ID: "look", Title: "Look at it:"},
		&cobra.Group{ID: "host", Title: "The host:"})
	root.AddCommand(
		a.upCmd(), a.downCmd(), a.chatCmd(), a.modelsCmd(),
		a.statusCmd(), a.psCmd(), a.topCmd(), a.explainCmd(), a.kvCmd(), a.recorderCmd(),
		a.devicesCmd(), a.doctorCmd(), a.benchCmd(), a.simCmd(), a.engineCmd(), a.configCmd(), a.versionCmd())
	strictArgs(root)
	return root
}

// strictArgs gives every command its arguments' errors as usage errors.
func strictArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usagef("%v; see '%s --help'", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
}

// client makes c a command that speaks to the node.
func (a *app) client(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.socket, "admin", "", "Unix socket of the node (default: $IEG_ADMIN, else where 'ieg up' puts it)")
	return c
}

// dial finds the node's socket: by flag, by environment, else where one
// listens.
func (a *app) dial() *admin.Client {
	if a.socket != "" {
		return admin.NewClient(a.socket)
	}
	if s := os.Getenv("IEG_ADMIN"); s != "" {
		return admin.NewClient(s)
	}
	paths := admin.ClientSockets()
	for _, p := range paths {
		if admin.ListenerPID(p) > 0 {
			return admin.NewClient(p)
		}
	}
	return admin.NewClient(paths[0])
}
