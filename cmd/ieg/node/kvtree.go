package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/kernel"
	"ieg/memory/kv"
)

// ledger copies what the kernel knows of the arena, as the flight recorder
// does, with the time.
func (k *KV) ledger(ctx context.Context) (l kv.HostLedger, now ieg.Time, err error) {
	if err := k.there(); err != nil {
		return l, 0, err
	}
	err = k.inspect(ctx, func(m *kernel.Machine) {
		s := m.Snapshot()
		if now = s.Now; s.KV.Host != nil {
			l = *s.KV.Host
		}
	})
	return l, now, err
}

// KVTree lists the hottest prefixes of both tiers.
func (k *KV) KVTree(ctx context.Context, n int) ([]admin.KVPrefix, error) {
	l, now, err := k.ledger(ctx)
	if err != nil {
		return nil, err
	}
	names := k.n.rootNames()
	a := newArenaTree(l)
	rows := a.rows(now, names)
	if k.cfg.Pager != nil {
		clock := time.Since(k.began) // about that of the pager
		for _, r := range k.cfg.Pager.Tree(n) {
			row := admin.KVPrefix{Hash: r.Hash, Model: names[r.Root], Depth: r.Depth, Tokens: r.Tokens, Bytes: r.Bytes, Partial: r.Partial,
				Heat: r.Heat, Age: max(clock-time.Duration(r.Used), 0), Pinned: r.Pinned || a.pinned[r.Hash], Tiers: []string{ieg.TierNVMe.String()}}
			if i, ok := a.at[r.Hash]; ok && l.Blocks[i].State == kv.HostResident {
				row.Tiers = []string{ieg.TierHost.String(), ieg.TierNVMe.String()}
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(x, y admin.KVPrefix) int { return cmp.Compare(y.Heat, x.Heat) })
	return rows[:min(n, len(rows))], nil
}

// arenaTree is the part of the arena's blocks that the NVMe tier lacks, as a
// forest.
type arenaTree struct {
	l      kv.HostLedger
	at     map[ieg.BlockHash]int // in l.Blocks, all of them
	kids   [][]int
	pinned map[ieg.BlockHash]bool
}

func newArenaTree(l kv.HostLedger) *arenaTree {
	a := &arenaTree{l: l, at: map[ieg.BlockHash]int{}, kids: make([][]int, len(l.Blocks)), pinned: map[ieg.BlockHash]bool{}}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		a.at[b.Block.Hash] = i
		if b.Parent >= 0 && a.only(i) {
			a.kids[b.Parent] = append(a.kids[b.Parent], i)
		}
	}
	for _, lease := range l.Leases {
		if lease.Kind == kv.LeasePin {
			for _, i := range lease.Blocks {
				a.pinned[l.Blocks[i].Block.Hash] = true
			}
		}
	}
	return a
}

// only tells that a block lies in the arena and nowhere else.
func (a *arenaTree) only(i int) bool {
	b := &a.l.Blocks[i]
	return len(b.Block.Tokens) > 0 && b.State == kv.HostResident && !b.Disk
}

// rows makes one for each block where texts part or end. Blocks come after
// their parents, so that going backwards sums what continues them first.
func (a *arenaTree) rows(now ieg.Time, names map[ieg.BlockHash]string) (rows []admin.KVPrefix) {
	tokens, bytes := make([]int64, len(a.l.Blocks)), make([]int64, len(a.l.Blocks))
	for i := len(a.l.Blocks) - 1; i >= 0; i-- {
		if !a.only(i) {
			continue
		}
		b := &a.l.Blocks[i]
		tokens[i] += int64(len(b.Block.Tokens))
		bytes[i] += b.Block.Bytes
		tokens[b.Parent] += tokens[i]
		bytes[b.Parent] += bytes[i]
	}
	for i := range a.l.Blocks {
		if !a.only(i) || len(a.kids[i]) == 1 {
			continue
		}
		b, run := &a.l.Blocks[i], i
		for up := int(b.Parent); a.only(up) && len(a.kids[up]) == 1; up = int(a.l.Blocks[up].Parent) {
			run = up
		}
		rows = append(rows, admin.KVPrefix{Hash: b.Block.Hash, Model: names[b.Block.Root], Depth: b.Block.Start + int32(len(b.Block.Tokens)),
			Tokens: tokens[run], Bytes: bytes[run], Heat: b.Heat.At(now), Age: now.Sub(b.Heat.Last),
			Tiers: []string{ieg.TierHost.String()}, Pinned: a.pinned[b.Block.Hash]})
	}
	return rows
}

// named finds the one block whose hash begins with some digits, and tells
// whether the arena has it. A whole hash is taken as it is.
func (k *KV) named(ctx context.Context, digits string) (hash ieg.BlockHash, host bool, err error) {
	l, _, err := k.ledger(ctx)
	if err != nil {
		return hash, false, err
	}
	digits = strings.ToLower(digits)
	found := map[ieg.BlockHash]bool{} // and whether the arena has it
	if hash.UnmarshalText([]byte(digits)) == nil {
		found[hash] = false
	} else if k.cfg.Pager != nil {
		for _, r := range k.cfg.Pager.Tree(admin.KVTreeRowsMax) {
			if strings.HasPrefix(r.Hash.String(), digits) {
				found[r.Hash] = false
			}
		}
	}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		if b.State == kv.HostResident && len(b.Block.Tokens) > 0 && strings.HasPrefix(b.Block.Hash.String(), digits) {
			found[b.Block.Hash] = true
		}
	}
	hash, err = theOne(digits, found)
	return hash, found[hash], err
}

// theOne is the only one of some blocks.
func theOne(digits string, found map[ieg.BlockHash]bool) (hash ieg.BlockHash, err error) {
	var names []string
	for h := range found {
		names = append(names, h.String())
		hash = h
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return hash, noBlock(digits)
	case len(names) > 1:
		return hash, fmt.Errorf("%w: %s names %d blocks, among them %s and %s; give more digits", admin.ErrInvalid, digits, len(names), names[0], names[1])
	}
	return hash, nil
}

func noBlock(digits string) error {
	return fmt.Errorf("%w: no block %s is in the tiers; see 'ieg kv tree'", admin.ErrNotFound, digits)
}
