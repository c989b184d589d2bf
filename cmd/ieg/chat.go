package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/config"
)

const chatHelp = `/exit    end (or Ctrl-D)
/clear   forget the conversation
/system  TEXT sets what the model is told first
/stats   time and tokens of the last answer
/help    this list`

// chatOptions are what a conversation is asked with.
type chatOptions struct {
	system      string
	temperature float64
	topP        float64
	maxTokens   int
	seed        int64
	stats       bool
}

func (a *app) chatCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "chat [PROMPT]", Short: "Chat with a model", GroupID: "node", Args: cobra.ArbitraryArgs,
		Long: `Ask one question, or without PROMPT talk: a line is a turn, /help lists commands.
With input from a pipe and no PROMPT, the whole input is the prompt.

Where no node runs, one is started with the model of --model, or the first one
found in the cache, and stopped at the end. Where one runs, --model picks one of
its models by name.`,
		Example: "  ieg chat 'Why is the sky blue?'\n  ieg chat --model model.gguf\n  git diff | ieg chat --system 'Review this change.'",
	}
	flags := config.Register(c.Flags())
	var o chatOptions
	f := c.Flags()
	f.StringVar(&o.system, "system", "", "what the model is told first")
	f.Float64Var(&o.temperature, "temperature", 0.7, "0 is the most likely token each time, 1 the model's own spread")
	f.Float64Var(&o.topP, "top-p", 0.95, "draw from the likeliest tokens that hold this share")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "longest answer; 0: to the context's end")
	f.Int64Var(&o.seed, "seed", -1, "repeatable draw; -1: a new one each time")
	f.BoolVar(&o.stats, "stats", false, "print time and tokens after each answer")
	c.RunE = func(c *cobra.Command, args []string) error {
		e, err := flags.Load()
		if err != nil {
			return err
		}
		if f := c.Flags().Lookup("admin"); f.Changed {
			a.socket = f.Value.String()
		}
		return a.chat(c.Context(), e, o, strings.Join(args, " "))
	}
	return c
}

func (a *app) chat(ctx context.Context, e *config.Effective, o chatOptions, prompt string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if prompt == "" && !isTerminal(a.in) {
		b, err := io.ReadAll(io.LimitReader(a.in, EventBytesMax))
		if err != nil {
			return err
		}
		prompt = strings.TrimSpace(string(b))
		if prompt == "" {
			return usagef("no prompt: give one as an argument or on the input")
		}
	}
	talk, stop, err := a.conversation(ctx, e, o)
	if err != nil {
		return err
	}
	defer stop()
	if prompt != "" {
		return a.ask(ctx, talk, prompt)
	}
	return a.repl(ctx, talk)
}

// conversation connects to the running node, or starts one.
func (a *app) conversation(ctx context.Context, e *config.Effective, o chatOptions) (*talk, func(), error) {
	cl := a.dial()
	v, err := cl.Version(ctx)
	stop := func() {}
	if errors.Is(err, admin.ErrNotRunning) {
		stop, err = a.ownNode(ctx, e)
		if err != nil {
			return nil, stop, err
		}
		cl = admin.NewClient(e.Admin)
		v, err = cl.Version(ctx)
	}
	if err != nil {
		stop()
		return nil, stop, err
	}
	name, err := a.awaitModel(ctx, cl, e)
	if err != nil {
		stop()
		return nil, stop, err
	}
	return newTalk(v.Listen, name, apiKey(ctx, cl, e), o), stop, nil
}

// awaitModel chooses a model of the node and waits until it is loaded.
func (a *app) awaitModel(ctx context.Context, cl *admin.Client, e *config.Effective) (string, error) {
	var bar *progress
	tick := time.NewTicker(LoadPollEvery)
	defer tick.Stop()
	for {
		models, err := cl.Models(ctx)
		if err != nil {
			return "", err
		}
		m, err := chooseModel(models, e)
		if err != nil {
			return "", err
		}
		if bar == nil {
			bar = newProgress(a.err, "loading "+m.Name)
			defer bar.done()
		}
		switch m.State {
		case string(ieg.EngineUp):
			return m.Name, nil
		case string(ieg.EngineLoading):
			bar.show(m.Loading)
		default:
			return "", fmt.Errorf("%w: %q is %s: %s", ieg.ErrNoModel, m.Name, m.State, m.Reason)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// chooseModel picks by the name or the file that --model gave, else the first
// that is ready and generates, else the first that loads.
func chooseModel(models []admin.Model, e *config.Effective) (admin.Model, error) {
	var want config.Model
	if len(e.Models) > 0 {
		want = e.Models[0]
	}
	loading := -1
	for i, m := range models {
		switch {
		case want.Path != "":
			if m.Name == want.Name || m.Path == want.Path || slices.Contains(m.Aliases, want.Name) {
				return m, nil
			}
		case m.State == string(ieg.EngineUp) && m.Generative:
			return m, nil
		case m.State == string(ieg.EngineLoading) && loading < 0:
			loading = i
		}
	}
	switch {
	case want.Path != "":
		return admin.Model{}, fmt.Errorf("%w: the running node has no %q; load it by 'ieg models load FILE' or see 'ieg models ls'", ieg.ErrNoModel, want.Name)
	case loading >= 0:
		return models[loading], nil
	}
	return admin.Model{}, fmt.Errorf("%w that chats is on the running node; load one by 'ieg models load FILE'", ieg.ErrNoModel)
}

// apiKey is the key for the node's API: $IEG_API_KEY, else the first of the
// node's key file, if this user can read it.
func apiKey(ctx context.Context, cl *admin.Client, e *config.Effective) string {
	if k := os.Getenv("IEG_API_KEY"); k != "" {
		return k
	}
	file := e.APIKeyFile
	if c, err := cl.Config(ctx); err == nil && file == "" {
		for _, v := range c.Values {
			if s, ok := v.Value.(string); ok && v.Path == "api_key_file" {
				file = s
			}
		}
	}
	if file == "" {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k := strings.TrimSpace(s.Text()); k != "" && !strings.HasPrefix(k, "#") {
			return k
		}
	}
	return ""
}

// ownNode starts a node for this conversation, with a port of its own.
func (a *app) ownNode(ctx context.Context, e *config.Effective) (func(), error) {
	none := func() {}
	if a.socket != "" {
		e.Admin = a.socket
	}
	if len(e.Models) == 0 {
		path := firstModel(e.CacheDir)
		if path == "" {
			return none, fmt.Errorf("%w: no node runs and no model lies in %s; name one by --model FILE", ieg.ErrNoModel, modelDir(e.CacheDir))
		}
		m := config.DefaultModel()
		m.Path, m.Name = path, config.ModelName(path)
		e.AddModel(m, "found in the cache")
	}
	if e.Source("listen") == "default" {
		e.Listen = "127.0.0.1:0"
	}
	s, err := start(e, slog.New(slog.DiscardHandler))
	if err != nil {
		return none, err
	}
	stop := func() { s.close() }
	if err := s.load(ctx, a.err); err != nil {
		stop()
		return none, err
	}
	return stop, nil
}

// ask puts one question; Ctrl-C ends the answer.
func (a *app) ask(ctx context.Context, t *talk, prompt string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if a.json {
		text, err := t.turn(ctx, prompt, func(string) {})
		if err != nil {
			return err
		}
		return a.printJSON(map[string]any{"model": t.model, "text": text, "finish_reason": t.finish,
			"prompt_tokens": t.usage.Prompt, "completion_tokens": t.usage.Completion, "id": t.id})
	}
	_, err := t.turn(ctx, prompt, func(s string) { fmt.Fprint(a.out, s) })
	fmt.Fprintln(a.out)
	if err == nil && t.o.stats {
		fmt.Fprintln(a.err, t.stats())
	}
	return err
}

// repl reads turns until the input ends.
func (a *app) repl(ctx context.Context, t *talk) error {
	file := a.in.(*os.File)
	fmt.Fprintf(a.out, "%s on %s; /help lists commands, Ctrl-D ends\n", t.model, t.base)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{file, a.out}, "› ")
	for {
		line, err := readLine(file, screen)
		if err != nil {
			fmt.Fprintln(a.out)
			return nil // the end of the input
		}
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "/") {
			if a.chatCommand(t, line) {
				return nil
			}
			continue
		}
		if err := a.ask(ctx, t, line); err != nil {
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(a.out, "(stopped)")
				continue
			}
			fmt.Fprintf(a.err, "ieg: %v\n", err)
		}
	}
}

// readLine holds the terminal raw only while a line is edited, so that Ctrl-C
// is a signal while an answer streams.
func readLine(f *os.File, screen *term.Terminal) (string, error) {
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(f.Fd()), old) }()
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		_ = screen.SetSize(w, h)
	}
	return screen.ReadLine()
}

// chatCommand does a command of the REPL; true ends it.
func (a *app) chatCommand(t *talk, line string) bool {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "/exit", "/quit":
		return true
	case "/clear":
		t.turns = nil
	case "/system":
		t.o.system = strings.TrimSpace(rest)
	case "/stats":
		fmt.Fprintln(a.out, t.stats())
	default:
		fmt.Fprintln(a.out, chatHelp)
	}
	return false
}

// stats tells how the last answer went.
func (t *talk) stats() string {
	if t.took == 0 {
		return "nothing was asked yet"
	}
	rate := 0.0
	if d := t.took - t.first; d > 0 && t.usage.Completion > 1 {
		rate = float64(t.usage.Completion-1) / d.Seconds()
	}
	return fmt.Sprintf("%s: first token after %s, %d tokens in %s (%.1f tok/s), prompt %d tokens (%d cached); ieg explain %s",
		t.finish, span(t.first), t.usage.Completion, span(t.took.Round(time.Millisecond)), rate, t.usage.Prompt, t.usage.Details.Cached, t.id)
}
