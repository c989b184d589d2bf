package kv_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ieg"
	"ieg/memory/kv"
)

// hostRun drives the ledger and its twin with the same random operations.
type hostRun struct {
	rng   *rand.Rand
	h     *kv.Host
	w     *hostTwin
	now   ieg.Time
	roots []ieg.BlockHash
	wants [][]*hostBlock // each list was wanted once
}

// text is a random text: blocks that agree in some tokens with each other, then
// a tail.
func (r *hostRun) text() (ieg.BlockHash, []ieg.Token) {
	var t []ieg.Token
	block := func() []ieg.Token {
		b := make([]ieg.Token, ieg.BlockTokens)
		kind := r.rng.IntN(3)
		for i := range b {
			if i >= 80*kind {
				b[i] = ieg.Token(kind)
			}
		}
		return b
	}
	for range r.rng.IntN(4) {
		t = append(t, block()...)
	}
	if r.rng.IntN(3) > 0 || len(t) == 0 {
		t = append(t, block()[:[]int{1, 20, 64, 100, 200}[r.rng.IntN(5)]]...)
	}
	return r.roots[r.rng.IntN(len(r.roots))], t
}

// pick is a random block for which f holds, nil if there is none.
func (r *hostRun) pick(f func(*hostBlock) bool) *hostBlock {
	var list []*hostBlock
	for _, b := range r.w.blocks {
		if f(b) {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.rng.IntN(len(list))]
}

func (r *hostRun) known(list []*hostBlock) (out []*kv.Known) {
	for _, b := range list {
		out = append(out, r.h.Get(b.name))
	}
	return out
}

func (r *hostRun) find() error {
	root, text := r.text()
	p := r.h.Find(root, kv.Names(nil, root, text), text, kv.Path{})
	path, n, host := r.w.find(root, text)
	if int(p.N) != n || int(p.Host) != host || !slices.Equal(p.Blocks, r.known(path)) {
		return fmt.Errorf("of %d tokens %d are found, %d in the arena, in %d blocks; the twin finds %d, %d, %d", len(text), p.N, p.Host, len(p.Blocks), n, host, len(path))
	}
	if r.rng.IntN(2) == 0 {
		r.h.Touch(p.Blocks, r.now)
		for _, b := range path {
			b.touched = append(b.touched, r.now)
		}
	}
	if r.rng.IntN(3) == 0 && len(r.wants) < 4 {
		r.h.Want(p.Blocks, 1)
		r.want(path)
	}
	return nil
}

func (r *hostRun) want(path []*hostBlock) {
	for _, b := range path {
		b.wanted++
	}
	r.wants = append(r.wants, path)
}

func (r *hostRun) unwant() {
	i := r.rng.IntN(len(r.wants))
	r.h.Want(r.known(r.wants[i]), -1)
	for _, b := range r.wants[i] {
		b.wanted--
	}
	r.wants = slices.Delete(r.wants, i, i+1)
}

// begin begins the last block of a text; sometimes it is refused.
func (r *hostRun) begin(root ieg.BlockHash, text []ieg.Token) error {
	block := lastBlock(root, text)
	if r.rng.IntN(4) == 0 {
		block.Bytes /= 2
	}
	before := map[ieg.BlockHash]bool{}
	r.h.Each(func(k *kv.Known) { before[k.Hash] = true })
	press := r.rng.IntN(2) == 0
	k := r.h.Begin(block, r.now, press)
	r.h.Each(func(k *kv.Known) { delete(before, k.Hash) })
	b := r.w.get(root, text)
	ok := b == nil || b.state == kv.HostAbsent
	if ok {
		b = r.w.enter(root, text)
		ok = b != nil
	}
	if ok {
		n := r.w.pages(block.Bytes)
		var err error
		if ok = n <= int(r.w.cfg.Pages); ok {
			ok, err = r.w.giveWay(n, b, before, r.now, press)
		}
		if err != nil {
			return err
		}
	}
	if len(before) > 0 || ok != (k != nil) {
		return fmt.Errorf("begun: %t, the twin: %t, %d blocks gave way without need", k != nil, ok, len(before))
	}
	if ok {
		b.state, b.bytes = kv.HostFilling, block.Bytes
	}
	return nil
}

func (r *hostRun) fill(b *hostBlock) {
	r.h.Fill(r.h.Get(b.name), 1, r.now)
	b.state, b.queued, b.touched = kv.HostResident, false, append(b.touched, r.now)
	if b.dropped {
		return // it helps nobody, so it makes nothing superfluous
	}
	for _, t := range r.w.blocks {
		if t != b && t.root == b.root && t.start() == b.start() && len(t.text) < len(b.text) && slices.Equal(t.text, b.text[:len(t.text)]) &&
			t.state == kv.HostResident && r.w.held(t) == 0 && t.wanted == 0 && len(r.w.kids(t)) == 0 {
			t.state = kv.HostAbsent
			t.dropped = false
		}
	}
}

// promise takes in a text, sometimes without its first block.
func (r *hostRun) promise() error {
	root, text := r.text()
	list := pathOf(root, text)
	skip := 0
	if len(list) > 1 && r.rng.IntN(4) == 0 {
		skip = 1
	}
	got := r.h.Promise(ieg.Stored{Blocks: list[skip:]})
	var path []*hostBlock
	for _, p := range list[skip:] {
		b := r.w.enter(root, text[:int(p.Start)+len(p.Tokens)])
		if b == nil {
			break
		}
		b.disk, b.kept = true, p.Bytes
		path = append(path, b)
	}
	if !slices.Equal(got, r.known(path)) {
		return fmt.Errorf("%d of %d promised blocks are taken in; the twin takes %d", len(got), len(list)-skip, len(path))
	}
	if len(path) > 0 {
		r.want(path)
	}
	return nil
}

func (r *hostRun) hold() {
	b := r.pick(func(b *hostBlock) bool { return b.state != kv.HostAbsent && !b.dropped })
	if b == nil {
		return
	}
	list := []*hostBlock{b}
	if r.rng.IntN(2) == 0 { // all before it too
		for at := b.start(); at > 0; at -= ieg.BlockTokens {
			list = append(list, r.w.get(b.root, b.text[:at]))
		}
		slices.Reverse(list)
	}
	l := hostLease{kind: kv.LeaseKind(r.rng.IntN(3)), owner: r.rng.Uint64N(3), epoch: ieg.Epoch(r.rng.IntN(2)), expiry: ieg.Never, blocks: list}
	if r.rng.IntN(2) == 0 {
		l.expiry = r.now + ieg.Time(r.rng.Int64N(int64(5*minute)))
	}
	l.id = r.h.Hold(l.kind, l.owner, l.epoch, l.expiry, r.known(list)...)
	r.w.leases = append(r.w.leases, l)
}

// let ends leases in one of the four ways.
func (r *hostRun) let() error {
	one := r.w.leases[r.rng.IntN(len(r.w.leases))]
	switch r.rng.IntN(4) {
	case 0:
		r.h.Release(one.id)
		r.w.end(func(l *hostLease) bool { return l.id == one.id })
	case 1:
		r.h.ReleaseOwner(one.kind, one.owner, one.epoch)
		r.w.end(func(l *hostLease) bool { return l.kind == one.kind && l.owner == one.owner && l.epoch == one.epoch })
	case 2:
		last := one.blocks[len(one.blocks)-1]
		r.h.Unpin(r.h.Get(last.name))
		r.w.end(func(l *hostLease) bool { return l.kind == kv.LeasePin && l.blocks[len(l.blocks)-1] == last })
	case 3:
		at := r.h.Expire(r.now)
		r.w.end(func(l *hostLease) bool { return l.expiry <= r.now })
		if at != r.w.next() {
			return fmt.Errorf("the next lease ends at %d; the twin's at %d", at, r.w.next())
		}
	}
	return nil
}

func (r *hostRun) drop() {
	root := r.roots[r.rng.IntN(len(r.roots))]
	all := r.rng.IntN(3) == 0
	which := func(h ieg.BlockHash) bool { return all || h == root }
	r.h.Drop(which)
	r.w.end(func(l *hostLease) bool { return l.kind == kv.LeasePin && which(l.blocks[0].root) })
	for _, b := range r.w.blocks {
		if which(b.root) {
			b.disk, b.dropped = false, b.state != kv.HostAbsent
		}
	}
}

// restart takes the ledger through its plain form; what is wanted is told anew.
func (r *hostRun) restart() error {
	was := r.h.Ledger()
	h, err := kv.FromLedger(was)
	if err != nil {
		return err
	}
	r.h = h
	for _, path := range r.wants {
		r.h.Want(r.known(path), 1)
	}
	if is := h.Ledger(); !reflect.DeepEqual(was, is) {
		return fmt.Errorf("the ledger %+v comes back as %+v", was, is)
	}
	return nil
}

func (r *hostRun) onBlock(k int) {
	switch k {
	case 0, 1, 2:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostFilling }); b != nil {
			r.fill(b)
		}
	case 3:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostFilling && r.w.held(b) == 0 }); b != nil {
			r.h.Abandon(r.h.Get(b.name))
			b.state, b.dropped = kv.HostAbsent, false
		}
	case 4:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostResident && r.w.held(b) == 0 }); b != nil {
			r.h.Evict(r.h.Get(b.name))
			b.state = kv.HostAbsent
		}
	case 5:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostResident && !b.dropped }); b != nil {
			r.h.OnDisk(r.h.Get(b.name), kv.Kept{Bytes: b.bytes})
			b.disk, b.kept = true, b.bytes
		}
	case 6:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostResident }); b != nil {
			r.h.Discard(r.h.Get(b.name))
			b.dropped = true
		}
	case 7:
		if b := r.pick(func(b *hostBlock) bool { return b.disk }); b != nil {
			r.h.OffDisk(r.h.Get(b.name))
			b.disk = false
		}
	case 8:
		if b := r.pick(func(b *hostBlock) bool { return b.state == kv.HostResident && !b.disk && !b.dropped }); b != nil {
			r.h.Get(b.name).Queued, b.queued = true, true
		}
	}
}

func (r *hostRun) step() (err error) {
	r.now += ieg.Time(r.rng.Int64N(int64(minute)))
	switch k := r.rng.IntN(100); {
	case k < 20:
		err = r.find()
	case k < 45:
		err = r.begin(r.text())
	case k < 75:
		r.onBlock(r.rng.IntN(9))
	case k < 80:
		err = r.promise()
	case k < 86:
		r.hold()
	case k < 92 && len(r.w.leases) > 0:
		err = r.let()
	case k < 97 && len(r.wants) > 0:
		r.unwant()
	case k == 97:
		r.drop()
	default:
		err = r.restart()
	}
	if err != nil {
		return err
	}
	r.w.settle()
	return r.w.equal(r.h)
}

func TestHostAgainstTwin(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	evicted, refused := int64(0), 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := kv.HostConfig{Pages: int32(1 + rng.IntN(80)), PageBytes: []int64{256, 512, 2000}[rng.IntN(3)], Policy: kv.Policy(seed % 2)}
		rates := kv.Rates{Token: 1e-3, Pair: 1e-6, Byte: []float64{1e-9, 1e-4, 1}[rng.IntN(3)]}
		r := &hostRun{rng: rng, h: kv.NewHost(cfg), w: &hostTwin{cfg: cfg, rates: rates}, roots: []ieg.BlockHash{kv.Root("m", ""), kv.Root("m", "t")}}
		r.h.SetRates(rates)
		for i := range 400 {
			if err := r.step(); err != nil {
				t.Fatalf("seed %d, operation %d (%s): %v", seed, i, cfg.Policy, err)
			}
		}
		evicted += r.h.Evicted
		refused += int(r.h.Lost)
	}
	if evicted == 0 || refused == 0 {
		t.Errorf("%d blocks gave way, %d without a copy", evicted, refused)
	}
}
