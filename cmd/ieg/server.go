package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"ieg/api/admin"
	"ieg/api/metrics"
	"ieg/api/openai"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/kernel/run"
)

// server is a running node with its doors.
type server struct {
	cfg     *config.Effective
	log     *slog.Logger
	node    *node.Node
	tiers   *tiers
	addr    string // where the API listens
	started time.Time
	told    chan admin.Drain // the admin socket asked for the end
	failed  chan error       // a part ended by itself

	door   *openai.Server
	api    *http.Server
	admin  *admin.Server
	stop   context.CancelFunc // ends the loop
	ended  sync.WaitGroup
	undo   []func() // gives back what was taken, last first
	closed sync.Once
}

// start is the composition root: it reads from top to bottom. What can be
// claimed by one node only is claimed first. Nothing is loaded yet.
func start(e *config.Effective, log *slog.Logger) (_ *server, err error) {
	s := &server{cfg: e, log: log, started: time.Now(), told: make(chan admin.Drain, 1), failed: make(chan error, 3)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()

	// The claims: data folder, admin socket, port.
	lock, err := lockData(e.DataDir, log)
	if err != nil {
		return nil, err
	}
	s.later(func() { lock.Close() })
	socket, err := admin.Listen(e.Admin, e.AdminGroup)
	if err != nil {
		return nil, err
	}
	s.later(func() { socket.Close() })
	port, err := listen(e.Listen)
	if err != nil {
		return nil, err
	}
	s.later(func() { port.Close() })
	s.addr = port.Addr().String()

	// The host: its devices, and where the engines' libraries lie.
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own path is unknown: %w", err)
	}
	state := filepath.Join(e.DataDir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another by --data-dir", err)
	}
	host := findHost(e, state)

	// The kernel's loop, what lies below the devices, and the engines.
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	tap := metrics.NewTap(meterConfig(e))
	doors := admin.Node{Host: s, Drainer: s}
	if err := s.openNode(self, state, host, tap, &doors); err != nil {
		return nil, err
	}
	s.ended.Go(func() {
		defer s.node.Probed()
		if err := probeBackends(ctx, self, e, s.node.AddDevices); err != nil && ctx.Err() == nil {
			log.Info("some devices can't be used", "error", err)
		}
	})
	s.serve("loop", func() error { return s.node.Run(ctx) })

	// The doors.
	kv := s.node.KV(s.tiers.door(e))
	scrape, err := metrics.Handler(metrics.Config{Snapshot: tap.Snapshot, KV: kv.KVTiers, Version: version})
	if err != nil {
		return nil, err
	}
	if err := s.openDoor(scrape); err != nil {
		return nil, err
	}
	s.serve("API", func() error { return s.api.Serve(port) })
	doors.Observer, doors.Models, doors.KV = s.node, s.node, kv
	s.admin, err = admin.NewServer(doors, e.AdminGroup)
	if err != nil {
		return nil, err
	}
	s.serve("admin socket", func() error { return s.admin.Serve(socket) })
	s.watchdog(ctx)
	return s, nil
}

// openNode makes the node: the kernel's loop with the tiers below the devices
// and the engines that it will start.
func (s *server) openNode(self, state string, h host, tap *metrics.Tap, doors *admin.Node) (err error) {
	e, log := s.cfg, s.log
	if s.tiers, err = openTiers(e, h.machine.Memory, log); err != nil {
		return err
	}
	s.later(s.tiers.close)
	prep := preparer{stateDir: state, libDir: libDirs(e), cores: h.machine.CPU.Granted, log: log}
	plugs := node.Config{
		Kernel: kernelConfig(e), Observers: []run.Observer{tap}, Command: []string{self, "engine", "serve"},
		Devices: h.devices, Prepare: prep.prepare, Log: log,
	}
	s.tiers.plug(&plugs)
	if err := s.publish(&plugs); err != nil {
		return err
	}
	if err := s.record(&plugs, doors); err != nil {
		return err
	}
	if s.node, err = node.New(plugs); err != nil {
		return err
	}
	s.tiers.begin(s.node.Loop())
	return nil
}

// record plugs the flight recorder into the loop and the admin socket.
func (s *server) record(plugs *node.Config, doors *admin.Node) error {
	box, err := newFlight(s.cfg)
	if err != nil {
		return fmt.Errorf("flight recorder: %w; switch it off by recorder.enabled: false", err)
	}
	if box == nil {
		return nil
	}
	s.later(func() {
		if err := box.Close(); err != nil {
			s.log.Warn("flight recorder", "error", err)
		}
	})
	plugs.Before, plugs.Observers, doors.Recorder = box.Before, append(plugs.Observers, box.Recorder), box
	return nil
}

// later notes what gives a claim back.
func (s *server) later(f func()) { s.undo = append(s.undo, f) }

// serve runs a part; its end by itself ends the node.
func (s *server) serve(what string, f func() error) {
	s.ended.Go(func() {
		if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s: %w", what, err)
		}
	})
}

// drain lets running requests end, at most for the timeout or until the next
// signal.
func (s *server) drain(timeout time.Duration, signals <-chan os.Signal) error {
	notify(s.log, daemon.SdNotifyStopping+"\nSTATUS=draining")
	s.door.SetDraining(true)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.node.Loop().Drain(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			s.log.Warn("requests were cut off at the end of the drain timeout", "requests", len(s.node.Status().Requests))
			return nil
		}
		// What the kernel has finished may still be on its way to clients.
		if err := s.api.Shutdown(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("API", "error", err)
		}
		return nil
	case <-signals:
		return &exitError{exitInterrupted, errors.New("ended at once by a second signal")}
	}
}

// close ends every part and gives the claims back. It may be called twice.
// The loop ends first: it fails what still runs, so that the door can tell the
// clients.
func (s *server) close() {
	s.closed.Do(func() {
		if s.stop != nil {
			s.stop()
		}
		if s.api != nil {
			s.closeDoor()
		}
		ctx, cancel := context.WithTimeout(context.Background(), CloseWait)
		defer cancel()
		if s.admin != nil {
			if err := s.admin.Shutdown(ctx); err != nil {
				s.log.Debug("admin socket", "error", err)
			}
		}
		s.ended.Wait()
		for i := len(s.undo) - 1; i >= 0; i-- {
			s.undo[i]()
		}
	})
}

// closeDoor closes the connections once the last answers are written, at most
// after AnswerWait.
func (s *server) closeDoor() {
	ctx, cancel := context.WithTimeout(context.Background(), AnswerWait)
	defer cancel()
	if err := errors.Join(s.api.Shutdown(ctx), s.api.Close()); err != nil {
		s.log.Debug("API", "error", err)
	}
}

// watchdog feeds systemd's for as long as the loop turns.
func (s *server) watchdog(ctx context.Context) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	s.ended.Go(func() {
		tick := time.NewTicker(every / 3)
		defer tick.Stop()
		var last uint64
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := s.node.Loop().Progress(); now != last {
				last = now
				notify(s.log, daemon.SdNotifyWatchdog)
			}
		}
	})
}

// Devices is for the admin socket.
func (s *server) Devices() []admin.Device { return s.node.Devices() }

// Config is for the admin socket.
func (s *server) Config() admin.Config { return wireConfig(s.cfg) }

// Version is for the admin socket.
func (s *server) Version() admin.Version { return s.version() }

func (s *server) version() admin.Version {
	v := ownVersion()
	v.PID, v.Started, v.Listen, v.DataDir = os.Getpid(), s.started, s.addr, s.cfg.DataDir
	return v
}

// Drain is for the admin socket.
func (s *server) Drain(d admin.Drain) error {
	select {
	case s.told <- d:
	default: // told before
	}
	return nil
}

// lockData claims the data folder for as long as the process lives. The pid in
// the file is a courtesy to who finds it locked: a full disk costs only that.
func lockData(dir string, log *slog.Logger) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another by --data-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another by --data-dir", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		pid := make([]byte, 20)
		n, _ := f.ReadAt(pid, 0)
		return nil, fmt.Errorf("%w with the data folder %s (pid %s); stop it by 'ieg down' or choose another folder by --data-dir",
			admin.ErrAlreadyRunning, dir, cmp.Or(strings.TrimSpace(string(pid[:n])), "unknown"))
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		log.Warn("the data folder can't be written; free some space, recordings and measurements may be lost", "error", err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w, or another program listens, on %s; stop it or choose another address by --listen", admin.ErrAlreadyRunning, addr)
	case err != nil:
		return nil, fmt.Errorf("the API can't listen on %s: %w; choose another address by --listen", addr, err)
	}
	return l, nil
}
