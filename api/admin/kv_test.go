package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"ieg"
)

// fakeKV answers with fixed facts and keeps what it was asked.
type fakeKV struct {
	asked []any
	err   error
}

func (f *fakeKV) KVTiers() KVTiers { return KVTiers{NVMe: KVNVMe{Why: "off"}} }
func (f *fakeKV) KVTree(_ context.Context, n int) ([]KVPrefix, error) {
	f.asked = append(f.asked, n)
	return nil, f.err
}
func (f *fakeKV) PinKV(_ context.Context, p KVPin) (KVPinned, error) {
	f.asked = append(f.asked, p)
	return KVPinned{Hash: ieg.BlockHash{7}, Tiers: []string{"host"}}, f.err
}
func (f *fakeKV) UnpinKV(ctx context.Context, p KVPin) (KVPinned, error) { return f.PinKV(ctx, p) }
func (f *fakeKV) DropKV(_ context.Context, d KVDrop) (KVDropped, error) {
	f.asked = append(f.asked, d)
	return KVDropped{NVMeBlocks: 3}, f.err
}
func (f *fakeKV) FlushKV(_ context.Context, d KVFlush) (KVFlushed, error) {
	f.asked = append(f.asked, d)
	return KVFlushed{Saved: 4}, f.err
}

func TestKVRoundTrips(t *testing.T) {
	kv := &fakeKV{}
	c, ctx := serve(t, &fakeNode{kv: kv}), context.Background()
	if got, err := c.KV(ctx); err != nil || got.NVMe.Why != "off" {
		t.Errorf("%+v, %v", got, err)
	}
	if rows, err := c.KVTree(ctx, 7); err != nil || rows == nil {
		t.Errorf("%v, %v", rows, err)
	}
	pin := KVPin{Hash: "abcd", For: time.Hour}
	if got, err := c.PinKV(ctx, pin); err != nil || got.Hash != (ieg.BlockHash{7}) || got.Tiers[0] != "host" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.UnpinKV(ctx, KVPin{Hash: "ABCD"}); err != nil {
		t.Error(err)
	}
	none := ""
	for _, d := range []KVDrop{{All: true}, {Tenant: &none}} {
		if got, err := c.DropKV(ctx, d); err != nil || got.NVMeBlocks != 3 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := c.FlushKV(ctx, KVFlush{Within: time.Second}); err != nil || got.Saved != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	want := []any{7, pin, KVPin{Hash: "ABCD"}, KVDrop{All: true}, KVDrop{Tenant: &none}, KVFlush{Within: time.Second}}
	if !reflect.DeepEqual(kv.asked, want) {
		t.Errorf("asked %+v, want %+v", kv.asked, want)
	}
	kv.err = ieg.ErrUnsupported
	if _, err := c.FlushKV(ctx, KVFlush{Within: time.Second}); !errors.Is(err, ieg.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestWrongKVBodies(t *testing.T) {
	kv := &fakeKV{}
	c := serve(t, &fakeNode{kv: kv})
	for _, row := range [][2]string{
		{"pin", `{"hash":"abc"}`}, {"pin", `{"hash":"abcg"}`}, {"pin", `{"hash":"` + strings.Repeat("a", 33) + `"}`},
		{"pin", `{"hash":"abcd","for_ns":-1}`}, {"unpin", `{}`}, {"pin", `{"hash":"abcd","for_ns":9223372036854775807}`},
		{"drop", `{}`}, {"drop", `{"all":true,"tenant":""}`}, {"drop", `{"tenant":"` + strings.Repeat("a", NameBytesMax+1) + `"}`},
		{"flush", `{}`}, {"flush", `{"within_ns":-5}`}, {"flush", `{"within_ns":9223372036854775807}`},
	} {
		if _, err := c.do(context.Background(), http.MethodPost, "/v1/kv/"+row[0], json.RawMessage(row[1])); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s %s: %v", row[0], row[1], err)
		}
	}
	for _, n := range []int{0, -1, KVTreeRowsMax + 1} {
		if _, err := c.KVTree(context.Background(), n); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d rows: %v", n, err)
		}
	}
	if len(kv.asked) > 0 {
		t.Errorf("the node was asked %+v", kv.asked)
	}
}

// What changes KV needs the right to write.
func TestKVRights(t *testing.T) {
	s := &Server{node: Node{KV: &fakeKV{}}}
	for _, r := range s.kvRoutes() {
		want := read
		if strings.HasPrefix(r.pattern, "POST") {
			want = write
		}
		if r.need != want {
			t.Errorf("%s needs %b, want %b", r.pattern, r.need, want)
		}
	}
}

func TestCountKV(t *testing.T) {
	st := ieg.Status{Totals: ieg.Totals{PromptTokens: 1000, CachedTokens: 600}}
	st.KV.Counts.Hits = [ieg.NumTiers]int64{400, 500, 50} // resumed sequences count again
	if got, want := CountKV(&st), (KVTokens{Device: 400, Host: 500, NVMe: 50, Computed: 400}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
