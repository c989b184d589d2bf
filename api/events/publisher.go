package events

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ieg"
	"ieg/api/events/zmtp"
	"ieg/kernel"
)

// Config says where events go.
type Config struct {
	Endpoint Endpoint
	Node     string // "host:port" of the node's API, for the topics
	Log      *slog.Logger
}

// Publisher publishes what an observer of the loop sees. It is a run.Observer.
type Publisher struct {
	node   string
	form   Form
	log    *slog.Logger
	queue  *queue[batch]
	subs   subscribers
	replay *replays // nil without a port for it
	doors  []*door
	ended  sync.WaitGroup

	// owned by the loop's goroutine
	seq   uint64
	begun bool // something was queued

	dropped atomic.Uint64
	sent    atomic.Uint64
}

// Stats are counts since the start.
type Stats struct {
	Messages    uint64 // handed to subscribers or kept
	Dropped     uint64 // lost for everyone: the loop told more than could be encoded
	Missed      uint64 // lost for one subscriber that read too slowly
	Subscribers int    // now
}

// New listens and begins to publish.
func New(cfg Config) (*Publisher, error) {
	p := &Publisher{node: cfg.Node, form: cfg.Endpoint.Form, log: cfg.Log,
		queue: newQueue[batch](QueueBatchesMax, QueueBytesMax), subs: subscribers{all: map[*subscriber]bool{}}}
	pub := zmtp.Config{Type: "PUB", Peers: []string{"SUB", "XSUB"}, WriteWait: WriteWait}
	if err := p.open(cfg.Endpoint.Publish, SubscribersMax, pub, p.subs.serve); err != nil {
		return nil, err
	}
	if cfg.Endpoint.Replay != "" {
		p.replay = &replays{}
		router := zmtp.Config{Type: "ROUTER", Peers: []string{"REQ", "DEALER", "ROUTER"}, WriteWait: WriteWait}
		if err := p.open(cfg.Endpoint.Replay, ReplayersMax, router, p.replay.serve); err != nil {
			return nil, errors.Join(err, p.doors[0].close())
		}
	}
	p.ended.Go(p.run)
	return p, nil
}

func (p *Publisher) open(addr string, most int, cfg zmtp.Config, serve func(*zmtp.Conn)) error {
	d, err := openDoor(addr, most, cfg, serve)
	if err != nil {
		return fmt.Errorf("KV events can't be published on %s: %w", addr, err)
	}
	p.doors = append(p.doors, d)
	return nil
}

// Addr is where events are published.
func (p *Publisher) Addr() net.Addr { return p.doors[0].listener.Addr() }

// ReplayAddr is where replays are asked for; nil if they can't be.
func (p *Publisher) ReplayAddr() net.Addr {
	if p.replay == nil {
		return nil
	}
	return p.doors[1].listener.Addr()
}

// Observe queues a copy of the events; it does not wait.
func (p *Publisher) Observe(_ ieg.Time, _ kernel.Event, r *kernel.Ready) {
	for rest := r.KV; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < BatchBlocksMax && rest[n].Model == rest[0].Model {
			n++
		}
		p.put(rest[:n])
		rest = rest[n:]
	}
}

// put queues the events of one model as one message, whose number is used up
// even if there is no room for it.
func (p *Publisher) put(events []ieg.KVEvent) {
	size := 0
	for i := range events {
		size += eventBytes + 4*len(events[i].Block.Tokens)
	}
	seq := p.seq
	p.seq++
	if !p.queue.room(size) {
		p.dropped.Add(1)
		return
	}
	p.queue.put(batch{seq: seq, at: time.Now(), model: events[0].Model, clear: !p.begun, events: copied(events)}, size)
	p.begun = true
}

// copied returns the events with tokens of their own.
func copied(events []ieg.KVEvent) []ieg.KVEvent {
	n := 0
	for i := range events {
		n += len(events[i].Block.Tokens)
	}
	out, tokens := append([]ieg.KVEvent(nil), events...), make([]ieg.Token, 0, n)
	for i := range out {
		at := len(tokens)
		tokens = append(tokens, out[i].Block.Tokens...)
		out[i].Block.Tokens = tokens[at:]
	}
	return out
}

// run encodes what was queued and hands it on.
func (p *Publisher) run() {
	enc := newEncoder(p.form)
	var told time.Time
	var lost uint64
	for {
		b, ok := p.queue.get()
		if !ok {
			return
		}
		if n := p.dropped.Load() + p.subs.dropped.Load(); n > lost && time.Since(told) >= LogEvery {
			p.log.Warn("KV events were dropped; who needs them all asks for a replay or reads faster", "messages", n-lost)
			told, lost = time.Now(), n
		}
		m := message{topic: "kv@" + p.node + "@" + b.model, seq: b.seq}
		if p.replay == nil && !p.subs.wanted(m.topic) {
			continue
		}
		m.payload = enc.payload(&b)
		if p.replay != nil {
			p.replay.keep(m)
		}
		p.sent.Add(1) // before: who has the message finds it counted
		p.subs.send(m)
	}
}

// Stats returns the counts.
func (p *Publisher) Stats() Stats {
	return Stats{Messages: p.sent.Load(), Dropped: p.dropped.Load(), Missed: p.subs.dropped.Load(), Subscribers: p.subs.count()}
}

// Close ends all connections. Events that wait are lost.
func (p *Publisher) Close() error {
	p.queue.close()
	p.ended.Wait()
	var errs []error
	for _, d := range p.doors {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}
