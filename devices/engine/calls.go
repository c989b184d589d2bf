package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ieg"
)

// calls is the node's side of the control plane of one incarnation: questions
// go out with an id, answers come back in any order.
type calls struct {
	out *outbox

	mu   sync.Mutex
	last uint64
	wait map[uint64]chan<- call
	err  error // set once the plane is gone
}

func newCalls(out *outbox) *calls { return &calls{out: out, wait: map[uint64]chan<- call{}} }

// ask sends a question and waits for its answer.
func (c *calls) ask(ctx context.Context, typ byte, q call) (call, error) {
	got := make(chan call, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return call{}, c.err
	}
	c.last++
	q.ID = c.last
	c.wait[q.ID] = got
	c.mu.Unlock()
	defer c.forget(q.ID)

	frame, err := closeFrame(appendCall(openFrame(nil, typ), typ, &q), 0)
	if err == nil {
		err = c.out.send(frame)
	}
	if err != nil {
		return call{}, err
	}
	select {
	case a := <-got:
		return a, a.Err
	case <-ctx.Done():
		return call{}, ctx.Err()
	}
}

func (c *calls) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wait, id)
}

// read delivers answers until the plane ends; then all waiting calls fail.
// It returns what was wrong with a frame, or nil.
func (c *calls) read(in *frameReader) error {
	err := c.deliver(in)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = ieg.ErrEngineLost
	for _, got := range c.wait {
		got <- call{Err: c.err}
	}
	clear(c.wait)
	if errors.Is(err, ieg.ErrProtocol) {
		return err
	}
	return nil
}

func (c *calls) deliver(in *frameReader) error {
	typ, body, err := in.next()
	if err != nil {
		return err
	}
	if typ != frameHello {
		return fmt.Errorf("%w: frame of type %d before hello", ieg.ErrProtocol, typ)
	}
	if _, err := decodeHello(body); err != nil {
		return err
	}
	for {
		typ, body, err := in.next()
		if err != nil {
			return err
		}
		if typ != frameTokens && typ != frameText && typ != frameRefused {
			return fmt.Errorf("%w: frame of type %d is no answer", ieg.ErrProtocol, typ)
		}
		a, err := decodeCall(typ, body)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if got, ok := c.wait[a.ID]; ok { // else its caller left
			delete(c.wait, a.ID)
			got <- a
		}
		c.mu.Unlock()
	}
}
