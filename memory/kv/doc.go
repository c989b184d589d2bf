// Package kv is the ledger of KV cache: which tokens lie where, who uses
// them, what may be given up. It is pure: it holds no KV bytes and moves none;
// it answers where a prefix is and says, as ieg.KVOp values, what an engine
// must do to its slots.
//
// A Pool is the ledger of one engine (tier device). A row is one slot of the
// engine. The tokens of a row are its known tokens; the first Computed of them
// are in KV:
//
//	tokens   [ in KV ......... | known, not computed ]
//	         0          Computed                len
//
// States of a row, one function per arrow:
//
//	        Acquire                Release
//	empty ──────────▶ owned ─────────────────▶ idle (cached)
//	  ▲                 ▲  Acquire (in place)    │
//	  │                 └────────────────────────┤
//	  └──────────────────────────────────────────┘ Evict, or overwritten
//
// Cells: in the unified layout rows share the cells of a copied prefix, so
// cells are counted in segments with a count of the rows that hold them; in
// the streams layout each row has its own cells. Check proves the sums.
//
// It does not know models, requests, time limits or policy beyond the order
// of giving up (least recently used first).
package kv
