package pager

import (
	"context"
	"sync"
	"time"

	"ieg"
	"ieg/memory/kv"
)

// Pager moves blocks between the arena and a store. All methods may be called
// from any goroutine.
type Pager struct {
	cfg    Config
	ctx    context.Context // of all calls of the store
	cancel context.CancelFunc
	movers sync.WaitGroup // the writer and the readers
	others sync.WaitGroup // the keeper and the reporter

	// writing is the turn of who changes what the store holds, but for the
	// reader that found a wrong block. It is taken before mu, and kept during
	// calls of the store.
	writing turn
	packed  []byte // of the writer: the encoded blocks of a batch

	mu       sync.Mutex
	stores   queue
	fetches  queue
	flight   int // moves asked for and not done
	fetching map[ieg.BlockHash]int
	closing  bool
	notices  []notice
	reported *sync.Cond // there are notices, or all is over
	silent   bool       // no notice will follow

	known  known
	health health
	budget budget
	flush  flushes
	count  counters
}

// turn is held by one at a time.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) pass() { <-t }

// queue holds moves that nobody has begun.
type queue struct {
	jobs []ieg.Move
	more *sync.Cond // there are jobs, or no more will come
}

// notice is a call of Done or, with state set, of State.
type notice struct {
	done  ieg.MoveDone
	state bool
	up    bool
	why   string
}

// New starts a Pager. It does not wait for the store to open: State tells when
// it can be used.
func New(cfg Config) (*Pager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Pager{cfg: cfg, writing: make(turn, 1), fetching: map[ieg.BlockHash]int{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.stores.more, p.fetches.more = sync.NewCond(&p.mu), sync.NewCond(&p.mu)
	p.reported = sync.NewCond(&p.mu)
	p.known.roots = map[ieg.BlockHash]Root{}
	p.known.reset(p)
	p.health.why = "the tier is being opened"
	p.health.lost = make(chan struct{}, 1)
	p.budget.rate, p.budget.daily = cfg.WriteRate, cfg.WriteDaily
	p.movers.Go(p.write)
	for range cfg.Workers {
		p.movers.Go(p.read)
	}
	p.others.Go(p.keep)
	p.others.Go(p.report)
	return p, nil
}

// Move begins a move, never waits, and reports its end by Done, once. The
// pages and what the move holds are the Pager's until then. After Close nothing
// is reported.
func (p *Pager) Move(m ieg.Move) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flight++
	q := &p.stores
	if m.Kind == ieg.MoveFetch {
		q = &p.fetches
		p.fetching[m.Block.Hash]++
	}
	if why := p.refusal(m.Kind); why != "" {
		p.end(&m, outcome{err: why})
		return
	}
	if m.Kind == ieg.MoveStore {
		p.flush.begun++
	}
	q.jobs = append(q.jobs, m)
	q.more.Signal()
}

// refusal says why a move can't begin.
func (p *Pager) refusal(kind ieg.MoveKind) string {
	switch {
	case p.closing:
		return "the tier is being closed"
	case p.health.store == nil, kind == ieg.MoveStore && !p.health.up:
		return p.health.says()
	case p.flight > p.cfg.Depth:
		return "too many moves are waiting"
	}
	return ""
}

// next takes the moves that go together: one, or as many as fit into bytes.
// None: there won't be any.
func (p *Pager) next(q *queue, bytes int64) []ieg.Move {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(q.jobs) == 0 {
		if p.closing {
			return nil
		}
		q.more.Wait()
	}
	n := 1
	for sum := q.jobs[0].Block.Bytes; n < len(q.jobs); n++ {
		if sum += q.jobs[n].Block.Bytes; sum > bytes {
			break
		}
	}
	jobs := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	return jobs
}

// outcome is how a move ended. The copy's form is told when there is one; its
// bytes were moved if that took time.
type outcome struct {
	err    string
	gone   bool
	codec  ieg.Codec
	bytes  int64
	digest uint64
	took   time.Duration
}

// kept is the outcome of a move whose block is, in that form, in the store.
func kept(codec ieg.Codec, bytes int64, digest uint64, took time.Duration) outcome {
	return outcome{codec: codec, bytes: bytes, digest: digest, took: took}
}

// end ends a move; p.mu is held.
func (p *Pager) end(m *ieg.Move, o outcome) {
	p.flight--
	if m.Kind == ieg.MoveFetch {
		if p.fetching[m.Block.Hash]--; p.fetching[m.Block.Hash] == 0 {
			delete(p.fetching, m.Block.Hash)
		}
	}
	p.count.move(m.Kind, o)
	p.notify(notice{done: ieg.MoveDone{
		ID: m.ID, Err: o.err, Gone: o.gone, Codec: o.codec, Bytes: o.bytes, Digest: o.digest, Took: o.took,
	}})
}

// finish ends a move.
func (p *Pager) finish(m *ieg.Move, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(m, o)
}

// failQueued ends all moves that nobody has begun; p.mu is held.
func (p *Pager) failQueued(why string) {
	for _, q := range []*queue{&p.fetches, &p.stores} {
		for i := range q.jobs {
			p.end(&q.jobs[i], outcome{err: why})
		}
		if q == &p.stores {
			p.flush.pass(len(q.jobs))
		}
		q.jobs = nil
	}
}

func (p *Pager) notify(n notice) {
	p.notices = append(p.notices, n)
	p.reported.Signal()
}

// report makes the calls of Done and State.
func (p *Pager) report() {
	for {
		p.mu.Lock()
		for len(p.notices) == 0 && !p.silent {
			p.reported.Wait()
		}
		list := p.notices
		p.notices = nil
		p.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, n := range list {
			if n.state {
				p.cfg.State(n.up, n.why)
			} else {
				p.cfg.Done(n.done)
			}
		}
	}
}

// Close ends all moves, by doing them as long as ctx lasts, and closes the
// store. Nothing is called or held after it.
func (p *Pager) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.budget.hurry()
	p.stores.more.Broadcast()
	p.fetches.more.Broadcast()
	p.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		p.movers.Wait()
		close(drained)
	}()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
		p.mu.Lock()
		p.failQueued("the tier is being closed")
		p.mu.Unlock()
		p.cancel()
		<-drained
	}
	p.cancel()
	p.mu.Lock()
	p.silent = true
	p.reported.Broadcast()
	p.mu.Unlock()
	p.others.Wait()
	return err
}

// Root is what the Pager must know of the blocks under a root.
type Root struct {
	// KVType is the type of their elements, INT8 whether they may be written
	// as int8.
	KVType string
	INT8   bool
	// TokenSeconds is the time to compute a token again, in seconds; 0: 1 ms.
	TokenSeconds float64
}

// Register tells what a root's blocks are. Those of other roots are written as
// they are and valued as if a token took 1 ms.
func (p *Pager) Register(root ieg.BlockHash, r Root) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &p.known
	if _, ok := k.roots[root]; !ok && len(k.roots) >= maxRoots {
		for h := range k.roots {
			if !k.index.HasRoot(h) {
				delete(k.roots, h)
			}
		}
		if len(k.roots) >= maxRoots {
			return
		}
	}
	k.roots[root] = r
}

// known is what is known of the blocks in the store; Pager.mu guards it.
type known struct {
	index   *kv.Index
	before  *kv.Index // while the store is read again: what was known of it
	records records
	roots   map[ieg.BlockHash]Root
}

// record is what a block's kv.Entry does not tell.
type record struct {
	digest uint64
	stored uint32 // seconds of Unix time
	codec  ieg.Codec
}

// records are kept in parts so that growing does not copy them.
type records []*[1024]record

func (r *records) at(ref kv.Ref) *record {
	for int(ref)>>10 >= len(*r) {
		*r = append(*r, new([1024]record))
	}
	return &(*r)[ref>>10][ref&1023]
}

// reset forgets all blocks, but keeps the heat and the pins for when they are
// read again.
func (k *known) reset(p *Pager) {
	if k.before == nil {
		k.before = k.index
	}
	k.index = kv.NewIndex(kv.IndexConfig{HalfLife: p.cfg.HalfLife, Policy: p.cfg.Policy, Saved: p.saved})
	k.records = nil
}

// saved is kv.IndexConfig.Saved: the time to compute a block less that to read
// it.
func (p *Pager) saved(root ieg.BlockHash, n int32, bytes int64) float64 {
	perToken := p.known.roots[root].TokenSeconds
	if perToken <= 0 {
		perToken = 1e-3
	}
	return max(float64(n)*perToken-p.count.read.seconds(bytes), 0)
}

// add enters a block that the store holds; false: it can't be part of a text.
func (k *known) add(b *ieg.Block, n int32, stored int64, heat float32, used ieg.Time) bool {
	e := kv.Entry{Hash: b.Hash, Parent: b.Parent, Root: b.Root, Start: b.Start, N: n, Bytes: b.Bytes, Heat: heat, Used: used}
	if k.before != nil {
		if was, ok := k.before.Get(b.Hash); ok {
			old := k.before.Entry(was)
			e.Heat, e.Used, e.Pinned = old.Heat, old.Used, old.Pinned
		}
	}
	ref, added := k.index.Add(e)
	if added {
		*k.records.at(ref) = record{digest: b.Digest, stored: uint32(stored), codec: b.Codec}
	}
	return ref != kv.NoRef
}
