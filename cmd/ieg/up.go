package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/config"
	"ieg/devices/engine"
)

func (a *app) upCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "up", Short: "Run the node: serve models", GroupID: "node", Args: modelsByFlag,
		Long: `Run the node in the foreground: load the models, serve the OpenAI API and the
admin socket, until SIGTERM, SIGINT or SIGHUP. The first signal drains: nothing new is
taken, what runs is finished within --drain-timeout. The second ends at once.

Only one node may use a socket, a port or a data folder; a second one says so and
ends with code 4.`,
		Example: `  ieg up --model model.gguf
  ieg up --model chat,gpt-4o=model.gguf --model embed=minilm.gguf --ctx 8192 --slots 16
  ieg up --config /etc/ieg/ieg.yaml --listen 0.0.0.0:9430 --api-key-file /etc/ieg/keys`,
	}
	flags := config.Register(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		e, err := flags.Load()
		if err != nil {
			return err
		}
		return a.up(c.Context(), e)
	}
	return c
}

// modelsByFlag says where a model belongs that was given as an argument.
func modelsByFlag(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is no flag; to serve a model use --model %s", args[0], args[0])
	}
	return nil
}

// ends are the signals that end a node. The end of a terminal is one of them,
// except where nohup took it away.
func ends() []os.Signal {
	out := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// up runs a node until it is told to end.
func (a *app) up(ctx context.Context, e *config.Effective) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, ends()...)
	defer signal.Stop(signals)
	// Whoever reads the log or the greeting may go; the node serves on.
	signal.Ignore(syscall.SIGPIPE)
	a.out = bare(a.out)

	log := a.logger(e)
	s, err := start(e, log)
	if err != nil {
		return err
	}
	defer s.close()

	loading, cancel := context.WithCancel(ctx)
	defer cancel()
	loaded := make(chan error, 1)
	go func() { loaded <- s.load(loading, a.err) }()
	for {
		select {
		case err := <-loaded:
			if err != nil {
				return err
			}
			notify(log, daemon.SdNotifyReady+"\nSTATUS=serving on "+s.addr)
			a.greet(s)
		case sig := <-signals:
			cancel()
			log.Info("draining", "signal", sig.String(), "timeout", time.Duration(e.DrainTimeout).String())
			return s.drain(time.Duration(e.DrainTimeout), signals)
		case d := <-s.told:
			cancel()
			if d.Now {
				return nil
			}
			log.Info("draining", "by", "admin", "timeout", time.Duration(e.DrainTimeout).String())
			return s.drain(time.Duration(e.DrainTimeout), signals)
		case err := <-s.failed:
			return err
		}
	}
}

// logger writes to stderr: text for people, JSON for machines.
func (a *app) logger(e *config.Effective) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(e.LogLevel)); err != nil {
		panic("the configuration was not checked: " + err.Error())
	}
	o := &slog.HandlerOptions{Level: level}
	if e.LogFormat == "text" || e.LogFormat == "auto" && isTerminal(a.err) {
		return slog.New(slog.NewTextHandler(a.err, o))
	}
	return slog.New(slog.NewJSONHandler(a.err, o))
}

// notify tells systemd, where it asked to be told.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd could not be told", "state", state, "error", err)
	}
}

// greet says that the node is ready, and what to do with it.
func (a *app) greet(s *server) {
	ms := s.node.Models()
	if a.json {
		v := s.version()
		if err := a.printJSON(map[string]any{"listen": s.addr, "admin": s.cfg.Admin, "pid": v.PID, "models": ms}); err != nil {
			s.log.Warn("stdout can't be written", "error", err)
		}
		return
	}
	if len(ms) == 0 {
		fmt.Fprintf(a.out, "ready on http://%s without a model; load one by: ieg models load FILE\n", s.addr)
		return
	}
	fmt.Fprintf(a.out, "ready on http://%s\n", s.addr)
	for _, m := range ms {
		if m.State != string(ieg.EngineUp) {
			fmt.Fprintf(a.out, "  %s: %s: %s\n", m.Name, m.State, m.Reason)
			continue
		}
		also := ""
		if len(m.Aliases) > 0 {
			also = " (also " + strings.Join(m.Aliases, ", ") + ")"
		}
		fmt.Fprintf(a.out, "  %s%s: %d slots of %d tokens on %s\n", m.Name, also, m.Slots, m.Context, m.Device)
	}
	key := ""
	if s.cfg.APIKeyFile != "" {
		key = ` -H "Authorization: Bearer $IEG_API_KEY"`
	}
	fmt.Fprintf(a.out, "try:\n  curl http://%s/v1/chat/completions%s -H 'Content-Type: application/json' -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hello!\"}]}'\n",
		reachable(s.addr), key)
	flag := ""
	if s.cfg.Source("admin") != "default" {
		flag = " --admin " + s.cfg.Admin
	}
	fmt.Fprintf(a.out, "  ieg chat%s\n", flag)
}

// load loads the configured models and waits until each is ready or given up.
// It fails when none of them can be served.
func (s *server) load(ctx context.Context, screen io.Writer) error {
	var first error
	up := 0
	for _, m := range s.cfg.Models {
		err := s.loadOne(ctx, m, screen)
		if err == nil {
			up++
			continue
		}
		if ctx.Err() != nil {
			return nil // told to end while loading
		}
		err = fmt.Errorf("model %q: %w", m.Name, err)
		if first == nil {
			first = err
		} else {
			s.log.Error("model not loaded", "error", err)
		}
	}
	if up == 0 {
		return first
	}
	if first != nil {
		s.log.Error("model not loaded", "error", first)
	}
	return nil
}

func (s *server) loadOne(ctx context.Context, m config.Model, screen io.Writer) error {
	got, err := s.node.LoadModel(ctx, admin.LoadModel{
		Path: m.Path, Name: m.Name, Aliases: m.Aliases, Context: m.Ctx, Slots: m.Slots, Threads: m.Threads,
		KVType: m.KVType, Layout: m.Layout, FlashAttn: m.FlashAttention, Device: m.Device, Embedding: m.Embedding,
	})
	if err != nil {
		return err
	}
	bar := newProgress(screen, "loading "+m.Name)
	defer bar.done()
	for {
		change := s.node.Changed()
		now, ok := findModel(s.node.Models(), got.Engine)
		switch {
		case !ok:
			return errors.New("unloaded meanwhile")
		case now.State == string(ieg.EngineUp):
			return nil
		case now.State == string(ieg.EngineDown) && s.node.GivenUp(got.Engine):
			return errors.New(now.Reason)
		}
		bar.show(now.Loading)
		s.keepAlive(now)
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keepAlive asks systemd for patience while a model loads.
func (s *server) keepAlive(m admin.Model) {
	notify(s.log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=loading %s, %.0f%%", LoadPatience.Microseconds(), m.Name, m.Loading*100))
}

func (a *app) downCmd() *cobra.Command {
	var now bool
	c := a.client(&cobra.Command{
		Use: "down", Short: "End the node after what runs", GroupID: "node", Args: cobra.NoArgs,
		Long:    "Tell the node to end: it takes nothing new, finishes what runs within its\n--drain-timeout, and ends. Returns when it has ended.",
		Example: "  ieg down\n  ieg down --now",
		RunE: func(c *cobra.Command, _ []string) error {
			cl := a.dial()
			v, err := cl.Version(c.Context())
			if err != nil {
				return err
			}
			// A node in a container counts its processes in its own way.
			pid := admin.ListenerPID(cl.Path())
			if err := cl.Drain(c.Context(), admin.Drain{Now: now}); err != nil {
				return err
			}
			tick := time.NewTicker(LoadPollEvery)
			defer tick.Stop()
			for pid > 0 && (admin.ListenerPID(cl.Path()) == pid || alive(pid)) {
				select {
				case <-c.Context().Done():
					return c.Context().Err()
				case <-tick.C:
				}
			}
			if a.json {
				return a.printJSON(map[string]int{"ended": v.PID})
			}
			fmt.Fprintf(a.out, "ended (pid %d)\n", v.PID)
			return nil
		},
	})
	c.Flags().BoolVar(&now, "now", false, "without waiting for what runs")
	return c
}

// alive tells whether a process runs. One that has ended holds nothing any
// more, whether or not its parent has asked for its exit code.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	state, _, err := engine.ProcessState(pid)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
	}
	return state != 'Z' && state != 'X'
}
