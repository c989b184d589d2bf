package events

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"sync"

	"ieg/api/events/zmtp"
)

// replays keeps the last messages for those who missed some.
type replays struct {
	mu    sync.Mutex
	kept  []message // by number
	bytes int
}

func (r *replays) keep(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.bytes = append(r.kept, m), r.bytes+m.bytes()
	for len(r.kept) > ReplayMessagesMax || r.bytes > ReplayBytesMax && len(r.kept) > 1 {
		r.bytes -= r.kept[0].bytes()
		r.kept[0] = message{} // the list keeps its array for a while
		r.kept = r.kept[1:]
	}
}

// since returns what is kept from a number on.
func (r *replays) since(seq uint64) []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := sort.Search(len(r.kept), func(i int) bool { return r.kept[i].seq >= seq })
	return slices.Clone(r.kept[at:])
}

// parseRequest reads a request for a replay: the number of the first message
// that is wanted, after the empty frame that a REQ socket adds.
func parseRequest(m zmtp.Message) (seq uint64, envelope [][]byte, ok bool) {
	f := m.Frames
	if len(f) == 2 && len(f[0]) == 0 {
		envelope, f = f[:1], f[1:]
	}
	if m.Command != "" || len(f) != 1 || len(f[0]) != 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(f[0]), envelope, true
}

// serve answers requests until the connection ends.
func (r *replays) serve(c *zmtp.Conn) {
	for {
		m, err := c.Read()
		if err != nil {
			return
		}
		seq, envelope, ok := parseRequest(m)
		if !ok {
			return
		}
		end := message{seq: math.MaxUint64} // −1
		for _, m := range append(r.since(seq), end) {
			if c.Write(slices.Concat(envelope, m.frames())...) != nil {
				return
			}
		}
	}
}
