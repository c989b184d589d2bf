package kernel

import (
	"slices"

	"ieg"
	"ieg/memory/kv"
)

// What a row computes is entered in the arena's ledger behind the blocks that
// it goes on from. These may have left the arena long ago: the ledger keeps
// them known for as long as the row may be saved.

// keep makes a row's blocks those of a text.
func (m *Machine) keep(e *engine, slot ieg.Slot, blocks []*kv.Known) {
	was := e.keeps[slot]
	m.kv.host.Keep(blocks, 1)
	m.kv.host.Keep(was, -1)
	e.keeps[slot] = append(was[:0], blocks...)
}

// keepAlso adds a block that was saved from a row.
func (m *Machine) keepAlso(e *engine, slot ieg.Slot, k *kv.Known) {
	if e.pool.Row(slot).Root == k.Root && !slices.Contains(e.keeps[slot], k) {
		m.kv.host.Keep([]*kv.Known{k}, 1)
		e.keeps[slot] = append(e.keeps[slot], k)
	}
}

// unkeep lets go of a row's blocks: it is empty.
func (m *Machine) unkeep(e *engine, slot ieg.Slot) {
	if m.kv.host != nil {
		m.kv.host.Keep(e.keeps[slot], -1)
		e.keeps[slot] = e.keeps[slot][:0]
	}
}
