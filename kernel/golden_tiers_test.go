package kernel_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/kernel"
	"ieg/memory/kv"
)

// What scripts say of KV below the device. A text is words with commas between
// them: a capital letter is a full block of it, A:100 the first 100 tokens of
// one, small letters are themselves, and what follows a plus sign is itself in
// capitals: what a sequence was given.

// below is what lies below the device in a script.
type below struct {
	moves []ieg.Move
}

// tierArgs are the arguments of the commands on it.
type tierArgs struct {
	kv, pages, page, bad, move int
	text, stored, err, why     string
	gone, nostore, blocks      bool
}

func (a *tierArgs) scan(t *testing.T, d *datadriven.TestData) {
	a.pages, a.page = 64, 16
	for name, into := range map[string]any{"kv": &a.kv, "pages": &a.pages, "page": &a.page, "bad": &a.bad, "move": &a.move,
		"text": &a.text, "stored": &a.stored, "err": &a.err, "why": &a.why} {
		d.MaybeScanArgs(t, name, into)
	}
	a.gone, a.nostore, a.blocks = d.HasArg("gone"), d.HasArg("nostore"), d.HasArg("blocks")
}

// tiers runs the commands on what lies below the device.
func (s *story) tiers(cmd string, a args) bool {
	root := kv.Root("kv", a.tenant)
	switch cmd {
	case "host": // pages of that many KB
		s.apply(kernel.HostUp{Pages: int32(a.pages), PageBytes: int64(a.page) << 10})
	case "nvme":
		s.apply(kernel.NVMeUp{})
	case "nonvme":
		s.apply(kernel.NVMeDown{Reason: a.why})
	case "moved":
		s.moved(a)
	case "pin":
		until := ieg.Never
		if a.wait > 0 {
			until = s.now.Add(time.Duration(a.wait) * time.Millisecond)
		}
		s.apply(kernel.KVControl{Kind: kernel.KVPin, Hash: s.lastName(root, a.text), Until: until})
	case "unpin":
		s.apply(kernel.KVControl{Kind: kernel.KVUnpin, Hash: s.lastName(root, a.text)})
	case "drop":
		s.apply(kernel.KVControl{Kind: kernel.KVDrop, Hash: root})
	case "dropall":
		s.apply(kernel.KVControl{Kind: kernel.KVDropAll})
	case "storeall":
		s.apply(kernel.KVControl{Kind: kernel.KVStore})
	case "rest":
		s.rest(a)
	case "kv":
		s.kv()
	case "notes":
		x, _ := s.m.Explain(ieg.RequestID(a.id), "")
		fmt.Fprintf(&s.out, "cached by tier: %v\n", x.Tiers)
		for _, n := range x.KV {
			fmt.Fprintln(&s.out, n)
		}
	default:
		return false
	}
	return true
}

// spelled makes tokens of a text.
func (s *story) spelled(text string) (tokens []ieg.Token) {
	for word := range strings.SplitSeq(text, ",") {
		letter, size, cut := strings.Cut(word, ":")
		plain, given := strings.CutPrefix(word, "+")
		switch {
		case given || letter == strings.ToLower(letter):
			for _, c := range []byte(plain) {
				tokens = append(tokens, ieg.Token(c))
			}
			continue
		case !cut:
			size = strconv.Itoa(ieg.BlockTokens)
		}
		n, err := strconv.Atoi(size)
		if err != nil {
			s.t.Fatalf("%q: %v", word, err)
		}
		for range n {
			tokens = append(tokens, 1000+ieg.Token(letter[0]))
		}
	}
	return tokens
}

// path lists the blocks of a text.
func (s *story) path(root ieg.BlockHash, text string) (out []ieg.Block) {
	tokens, parent := s.spelled(text), root
	for at := 0; at < len(tokens); at += ieg.BlockTokens {
		part := tokens[at:min(at+ieg.BlockTokens, len(tokens))]
		b := ieg.Block{Hash: kv.Name(parent, part), Parent: parent, Root: root, Start: int32(at), Tokens: part, Bytes: int64(len(part)) * 128, Digest: 1}
		out, parent = append(out, b), b.Hash
	}
	return out
}

func (s *story) lastName(root ieg.BlockHash, text string) ieg.BlockHash {
	list := s.path(root, text)
	return list[len(list)-1].Hash
}

// words completes a request by its text and what the NVMe tier has of it.
func (s *story) words(r *ieg.Request, a args) {
	r.NoStore = a.nostore
	if a.text != "" {
		r.Prompt = s.spelled(a.text)
	}
	if a.stored != "" {
		r.Stored.Blocks = s.path(kv.Root("kv", a.tenant), a.stored)
		r.Stored.Tokens = int32(len(s.spelled(a.stored)))
	}
}

// copies reports what a step copied, which it did however it ended. bad names
// the block of the first load that proves one and is not what it should be; what
// would go on from that isn't done.
func (s *story) copies(d *ieg.StepDone, f *flying, a args) {
	if f.repeat > 0 {
		return
	}
	emptied := ieg.NoSlot
	for i, op := range f.batch.Ops {
		if op.Kind != ieg.KVSave && op.Kind != ieg.KVLoad {
			continue
		}
		c := ieg.CopyDone{Op: int32(i), Digest: uint64(d.Step), Took: time.Duration(op.N) * time.Microsecond}
		if op.Kind == ieg.KVLoad && a.bad > 0 && (!op.Open || len(op.Extents) > 1) {
			c.Bad = int32(a.bad)
			a.bad, d.Outcome, d.Err, d.Results = 0, ieg.StepFailed, "a block is wrong", nil
			emptied = op.To
		} else if op.Kind == ieg.KVLoad && op.To == emptied && op.Start > 0 {
			continue
		}
		d.Copies = append(d.Copies, c)
	}
}

// moved ends a move, the oldest one if none is named.
func (s *story) moved(a args) {
	at := 0
	for i, v := range s.below.moves {
		if v.ID == ieg.MoveID(a.move) {
			at = i
		}
	}
	if len(s.below.moves) == 0 {
		s.t.Fatal("nothing is moved")
	}
	v := s.below.moves[at]
	s.below.moves = append(s.below.moves[:at:at], s.below.moves[at+1:]...)
	took := time.Duration(a.took) * time.Millisecond
	s.now = s.now.Add(took)
	d := ieg.MoveDone{ID: v.ID, Err: a.err, Gone: a.gone, Took: took}
	if d.Err == "" {
		d.Bytes, d.Digest = v.Block.Bytes, v.Block.Digest
	}
	s.apply(kernel.MoveDone{Done: d})
}

func (s *story) showMoves(moves []ieg.Move) {
	for _, v := range moves {
		what, way := "store", "from"
		if v.Kind == ieg.MoveFetch {
			what, way = "fetch", "to"
		}
		fmt.Fprintf(&s.out, "%s [%d, %d) %s pages %v, move %d\n", what, v.Block.Start, int(v.Block.Start)+len(v.Block.Tokens), way, v.Pages, v.ID)
		s.below.moves = append(s.below.moves, v)
	}
}

// rest lets the engine work until nothing is in flight, and sums up.
func (s *story) rest(a args) {
	from := s.m.Status()
	n, moves := 0, len(s.below.moves)
	for len(s.steps) > 0 {
		if n++; n > 1000 {
			s.t.Fatal("it never rests")
		}
		s.report("done", 1, a)
	}
	s.out.Reset()
	to := s.m.Status()
	fmt.Fprintf(&s.out, "%d steps, %d tokens generated, %d requests finished", n, to.Totals.GeneratedTokens-from.Totals.GeneratedTokens, to.Totals.Finished-from.Totals.Finished)
	if n := to.KV.Counts.Saves - from.KV.Counts.Saves; n > 0 {
		fmt.Fprintf(&s.out, ", %d blocks saved", n)
	}
	if n := to.KV.Counts.Loads - from.KV.Counts.Loads; n > 0 {
		fmt.Fprintf(&s.out, ", %d loads", n)
	}
	if n := len(s.below.moves) - moves; n > 0 {
		fmt.Fprintf(&s.out, ", %d moves begun", n)
	}
	fmt.Fprintln(&s.out)
}

func (s *story) kv() {
	k := s.m.Status().KV
	fmt.Fprintf(&s.out, "arena: %d blocks, %d of %d pages free, %d evicted, leases %v\n", k.Blocks, k.FreePages, k.Pages, k.Evicted, k.Leases)
	fmt.Fprintf(&s.out, "nvme: %t, %d moves, %d queued", k.NVMe, k.Moves, k.Queued)
	if k.NVMeWhy != "" {
		fmt.Fprintf(&s.out, " (%s)", k.NVMeWhy)
	}
	c := k.Counts
	fmt.Fprintf(&s.out, "\nhits %v, %d saves (%d refused), %d loads (%d declined), %d stores (%d refused), %d fetches (%d declined, %d late, %d failed), %d corrupt\n",
		c.Hits, c.Saves, c.SavesRefused, c.Loads, c.BringsDeclined, c.Stores, c.StoresRefused, c.Fetches, c.FetchesDeclined, c.FetchesLate, c.FetchesFailed, c.Corrupt)
}
