package node

import (
	"maps"
	"strconv"
	"testing"

	"ieg"
	"ieg/api/admin"
	"ieg/memory/kv"
)

// What a flush leaves is told with its cause.
func TestFlushNote(t *testing.T) {
	left, full, done := admin.KVFlushed{Left: 1}, admin.KVFlushed{HostFull: true}, admin.KVFlushed{}
	for _, c := range []struct {
		f    *admin.KVFlushed
		nv   admin.KVNVMe
		want string
	}{
		{&done, admin.KVNVMe{Up: true, State: admin.NVMeUp}, ""},
		{&done, admin.KVNVMe{Up: true, State: admin.NVMeUp, Why: "the tier is full"}, ""},
		{&left, admin.KVNVMe{Up: true, State: admin.NVMeUp, Why: "the tier is full"}, "the tier is full"},
		{&left, admin.KVNVMe{Up: true, State: admin.NVMeUp}, "the tier nvme refused it: it had no room, or a bound of writing was reached"},
		{&full, admin.KVNVMe{Up: true, State: admin.NVMeUp}, "raise kv.host, or end what is running"},
		{&left, admin.KVNVMe{State: admin.NVMeOff, Why: "kv.nvme is 0"}, "the tier nvme is off: kv.nvme is 0"},
		{&left, admin.KVNVMe{State: admin.NVMeDown, Why: "read-only"}, "the tier nvme is down and is tried again: read-only"},
		{&left, admin.KVNVMe{State: admin.NVMeOpening, Why: "the tier is being read"}, "the tier is being read"},
	} {
		if got := flushNote(c.f, &c.nv); got != c.want {
			t.Errorf("%+v, %+v: %q, want %q", *c.f, c.nv, got, c.want)
		}
	}
	if !done.Done() || left.Done() || full.Done() {
		t.Error("done and not done are mixed up")
	}
}

// The roots of salts are known as long as there is room for them, and only for
// models that are loaded.
func TestSaltedRoots(t *testing.T) {
	n := &Node{salted: map[ieg.BlockHash]string{}, models: []*model{
		{info: ieg.EngineInfo{KVName: "kind", Model: ieg.ModelInfo{Name: "m"}}}, {info: ieg.EngineInfo{Model: ieg.ModelInfo{Name: "keeps no KV"}}}}}
	n.meet("kind", "alice")
	n.meet("kind", "")
	n.meet("unloaded", "alice")
	want := map[ieg.BlockHash]string{kv.Root("kind", ""): "m", kv.Root("kind", "alice"): "m"}
	if got := n.rootNames(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range SaltedMax {
		n.meet("kind", strconv.Itoa(i))
	}
	names := n.rootNames()
	if len(n.salted) > SaltedMax || names[kv.Root("kind", "alice")] != "" || names[kv.Root("kind", strconv.Itoa(SaltedMax-1))] != "m" {
		t.Errorf("%d roots are known", len(n.salted))
	}
}
