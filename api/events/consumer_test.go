package events

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// The order of fields in the array form.
var (
	storedFields = strings.Fields("block_hashes parent_block_hash token_ids block_size lora_id medium lora_name extra_keys " +
		"group_idx kv_cache_spec_kind kv_cache_spec_sliding_window")
	removedFields = strings.Fields("block_hashes medium group_idx")
)

// told is what a consumer makes of an event.
type told struct {
	Type   string
	Hashes []uint64
	Parent *uint64
	Tokens []int64
	Size   int64
	Medium string
}

// decode reads a payload in either form, as consumers must.
func decode(payload []byte) (at float64, events []told, err error) {
	var outer []any
	dec := msgpack.NewDecoder(bytes.NewReader(payload))
	dec.UseLooseInterfaceDecoding(true)
	if err := dec.Decode(&outer); err != nil {
		return 0, nil, err
	}
	if len(outer) != 3 || number(outer[2]) != 0 {
		return 0, nil, fmt.Errorf("outer array %v", outer)
	}
	for _, raw := range outer[1].([]any) {
		fields, ok := raw.(map[string]any)
		if !ok {
			fields = named(raw.([]any))
		}
		t, err := read(fields)
		if err != nil {
			return 0, nil, err
		}
		events = append(events, t)
	}
	return outer[0].(float64), events, nil
}

// named gives the fields of an array their names.
func named(list []any) map[string]any {
	names := map[string][]string{"BlockStored": storedFields, "BlockRemoved": removedFields}[list[0].(string)]
	out := map[string]any{"type": list[0]}
	for i, v := range list[1:] {
		out[names[i]] = v
	}
	return out
}

func read(f map[string]any) (t told, err error) {
	t.Type = f["type"].(string)
	if t.Type == "AllBlocksCleared" {
		return t, nil
	}
	t.Medium = f["medium"].(string)
	for _, h := range f["block_hashes"].([]any) {
		t.Hashes = append(t.Hashes, uint64(number(h)))
	}
	if t.Type == "BlockRemoved" {
		return t, nil
	}
	if p := f["parent_block_hash"]; p != nil {
		n := uint64(number(p))
		t.Parent = &n
	}
	for _, n := range f["token_ids"].([]any) {
		t.Tokens = append(t.Tokens, number(n))
	}
	t.Size = number(f["block_size"])
	if int(t.Size)*len(t.Hashes) != len(t.Tokens) {
		return t, fmt.Errorf("%d blocks of %d with %d tokens", len(t.Hashes), t.Size, len(t.Tokens))
	}
	return t, nil
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	panic(fmt.Sprintf("%T is not a number", v))
}

// view is what a consumer knows of a node: blocks by model and medium.
type view map[string]map[uint64]bool

func (v view) fold(topic string, events []told) {
	model := topic[strings.LastIndexByte(topic, '@')+1:]
	for _, e := range events {
		key := model + " " + e.Medium
		if v[key] == nil && e.Medium != "" {
			v[key] = map[uint64]bool{}
		}
		for _, h := range e.Hashes {
			if e.Type == "BlockStored" {
				v[key][h] = true
			} else {
				delete(v[key], h)
			}
		}
		if e.Type == "AllBlocksCleared" {
			clear(v)
		}
	}
}

// consumer is a SUB socket of another implementation.
type consumer struct {
	t    *testing.T
	sock zmq4.Socket
}

// consume subscribes to a topic and waits until the publisher knows.
func consume(t *testing.T, p *Publisher, topic string) *consumer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c := &consumer{t: t, sock: zmq4.NewSub(ctx)}
	t.Cleanup(func() { c.sock.Close() })
	if err := c.sock.Dial("tcp://" + p.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if err := c.sock.SetOption(zmq4.OptionSubscribe, topic); err != nil {
		t.Fatal(err)
	}
	await(t, "the subscription", func() bool { return p.subs.wanted(topic) })
	return c
}

// next reads one message.
func (c *consumer) next() (topic string, seq uint64, payload []byte) {
	c.t.Helper()
	m, err := c.sock.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	if len(m.Frames) != 3 || len(m.Frames[1]) != 8 {
		c.t.Fatalf("message of %d frames", len(m.Frames))
	}
	return string(m.Frames[0]), binary.BigEndian.Uint64(m.Frames[1]), m.Frames[2]
}

// await polls for a condition.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
