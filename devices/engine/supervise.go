package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"ieg"
)

// supervise runs one incarnation after the other. It keeps its thread to
// itself: Linux ends a child with its parent thread (PDEATHSIG), and a thread
// is needed to wait in anyway.
func (c *Child) supervise() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.ended)
	var h history
	for epoch := c.cfg.Epoch + 1; ; epoch++ {
		e := c.incarnate(epoch)
		wait, final := h.next(e)
		level := slog.LevelWarn
		if e.closed {
			level = slog.LevelInfo
		}
		c.cfg.Log.Log(context.Background(), level, "engine down", "engine", c.cfg.ID, "epoch", epoch, "reason", e.reason(), "final", final, "restart_in", wait)
		c.cfg.Notify(Down{ID: c.cfg.ID, Epoch: epoch, Reason: e.reason(), Err: e.identity(), Stderr: e.stderr, Final: final})
		if final {
			return
		}
		select {
		case <-time.After(wait):
		case <-c.closing:
			c.cfg.Notify(Down{ID: c.cfg.ID, Epoch: epoch, Reason: "closed", Final: true})
			return
		}
	}
}

// incarnate starts the process, serves it to its end, and reaps it.
func (c *Child) incarnate(epoch ieg.Epoch) *ending {
	inc, err := c.spawn(epoch)
	if err != nil {
		return &ending{err: err}
	}
	c.mu.Lock()
	c.cur = inc
	if c.closed {
		inc.close()
	}
	c.mu.Unlock()
	c.cfg.Log.Info("engine started", "engine", c.cfg.ID, "epoch", epoch, "pid", inc.pid())
	c.cfg.Notify(Loading{ID: c.cfg.ID, Epoch: epoch, PID: inc.pid()})

	var wg sync.WaitGroup
	wg.Go(inc.out.run)
	wg.Go(inc.ctlOut.run)
	wg.Go(func() {
		if err := inc.calls.read(newFrameReader(inc.ctl)); err != nil {
			inc.fail(err)
		}
	})
	wg.Go(inc.read)
	gone := make(chan struct{})
	wg.Go(func() { inc.watch(gone) })
	exit := inc.wait()
	close(gone)
	inc.hangUp()
	wg.Wait()
	inc.release()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.cur = nil
	e := &ending{err: inc.err, up: inc.up, exit: exit, kill: inc.killed, closed: c.closed, word: inc.tail.lastWord(), stderr: inc.tail.all()}
	if inc.up {
		e.ran = time.Since(inc.upAt)
	}
	return e
}

// read takes the child's frames and turns them into notes.
func (inc *incarnation) read() {
	in := newFrameReader(inc.step)
	for {
		typ, body, err := in.next()
		if err == nil {
			err = inc.take(typ, body)
		}
		if err != nil {
			inc.fail(lost(err))
			return
		}
	}
}

// fail notes why the connection ended; the process may leave by itself then,
// unless it broke the protocol.
func (inc *incarnation) fail(err error) {
	c := inc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if inc.err == nil {
		inc.err = err
	}
	if errors.Is(inc.err, ieg.ErrProtocol) {
		inc.signalKill()
		return
	}
	inc.linger = time.AfterFunc(exitWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		inc.signalKill()
	})
}

// take handles one frame of the step plane.
func (inc *incarnation) take(typ byte, body []byte) error {
	c := inc.c
	if !inc.greeted && typ != frameHello {
		return fmt.Errorf("%w: frame of type %d before hello", ieg.ErrProtocol, typ)
	}
	switch typ {
	case frameHello:
		inc.greeted = true
		inc.greeting.Stop()
		_, err := decodeHello(body)
		return err
	case frameProgress:
		f, err := decodeProgress(body)
		if err == nil {
			c.cfg.Notify(Loading{ID: c.cfg.ID, Epoch: inc.epoch, PID: inc.pid(), Fraction: f})
		}
		return err
	case frameReady:
		return inc.takeReady(body)
	case frameFailed:
		failure, err := decodeError(body)
		if err != nil {
			return err
		}
		c.mu.Lock()
		inc.err = failure
		c.mu.Unlock()
		return nil
	case frameDone:
		return inc.takeDone(body)
	}
	return fmt.Errorf("%w: frame of type %d from the engine", ieg.ErrProtocol, typ)
}

func (inc *incarnation) takeReady(body []byte) error {
	info, err := decodeInfo(body)
	if err != nil {
		return err
	}
	c := inc.c
	info.ID, info.Epoch = c.cfg.ID, inc.epoch
	c.mu.Lock()
	inc.up, inc.upAt, inc.backend = true, time.Now(), info.Backend
	c.mu.Unlock()
	c.cfg.Log.Info("engine up", "engine", c.cfg.ID, "epoch", inc.epoch, "model", info.Model.Name)
	c.cfg.Notify(Up{Info: info, PID: inc.pid()})
	return nil
}

func (inc *incarnation) takeDone(body []byte) error {
	c := inc.c
	d := c.report()
	if err := decodeDone(body, d); err != nil {
		return err
	}
	c.mu.Lock()
	ok := inc.busy && d.Engine == c.cfg.ID && d.Epoch == inc.epoch && d.Step == inc.running
	if ok && d.Last {
		inc.busy = false
	}
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: report of engine %d epoch %d step %d, which is not in flight", ieg.ErrProtocol, d.Engine, d.Epoch, d.Step)
	}
	c.cfg.Notify(Done{d})
	return nil
}
