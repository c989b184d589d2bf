package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/vmihailenco/msgpack/v5"

	"ieg"
)

// The script's events, one a line:
//
//	stored TIER NAME PARENT TOKEN…    (PARENT "-": the root)
//	removed TIER NAME…
//
// and the payload in the words of JSON. Names stand for hashes: a is 0xa1.
func TestPayload(t *testing.T) {
	datadriven.RunTest(t, "testdata/payload.txt", func(t *testing.T, d *datadriven.TestData) string {
		b := batch{at: time.Unix(1_800_000_000, 500_000_000), model: "m", clear: d.HasArg("clear")}
		for line := range strings.Lines(d.Input) {
			b.events = append(b.events, scripted(t, strings.Fields(line))...)
		}
		form := map[string]Form{"maps": Maps, "arrays": Arrays}[d.Cmd]
		payload := newEncoder(form).payload(&b)
		if _, _, err := decode(payload); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		var v []any
		if err := msgpack.Unmarshal(payload, &v); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		fmt.Fprintf(&out, "%.1f rank %v\n", v[0], v[2])
		for _, e := range v[1].([]any) {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s\n", text)
		}
		return out.String()
	})
}

func scripted(t *testing.T, f []string) (out []ieg.KVEvent) {
	tier := map[string]ieg.Tier{"device": ieg.TierDevice, "host": ieg.TierHost, "nvme": ieg.TierNVMe}[f[1]]
	if f[0] == "removed" {
		for _, n := range f[2:] {
			out = append(out, ieg.KVEvent{Kind: ieg.KVRemoved, Tier: tier, Model: "m", Block: ieg.Block{Hash: letter(n)}})
		}
		return out
	}
	b := ieg.Block{Hash: letter(f[2]), Parent: letter(f[3]), Root: letter("-")}
	for _, n := range f[4:] {
		var token ieg.Token
		if _, err := fmt.Sscan(n, &token); err != nil {
			t.Fatal(err)
		}
		b.Tokens = append(b.Tokens, token)
	}
	return []ieg.KVEvent{{Tier: tier, Model: "m", Block: b}}
}

// letter is the hash that a letter stands for; its first half is not published.
func letter(n string) ieg.BlockHash {
	return ieg.BlockHash{0: n[0], 15: n[0] - 'a' + 0xa1}
}

// However long a turn's chains are, no event is larger than consumers take.
func TestEventsFitConsumers(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	c := consume(t, p, "")
	loop(p, chain(1, "m", BatchBlocksMax+2, 0))
	var blocks []int
	for range 2 {
		_, _, payload := c.next()
		_, events, err := decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == "BlockStored" {
				blocks = append(blocks, len(e.Hashes))
			}
			if len(e.Hashes) > 65_536 || len(e.Tokens) > 1_048_576 {
				t.Errorf("an event of %d blocks and %d tokens", len(e.Hashes), len(e.Tokens))
			}
		}
	}
	if fmt.Sprint(blocks) != fmt.Sprint([]int{BatchBlocksMax, 2}) {
		t.Errorf("blocks %v", blocks)
	}
}
