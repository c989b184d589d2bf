package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ieg/api/admin"
	"ieg/bench/serve"
)

// longText is a prompt of about n tokens of the synthetic engine that begins
// with a word.
func longText(word string, n int) string {
	return word + strings.Repeat(" meander", n/8)
}

// answerUsage asks for a few tokens and returns how the prompt was counted.
func answerUsage(base, text string, more map[string]any) (u usage, err error) {
	body := map[string]any{"messages": []message{{"user", text}}, "max_tokens": 4}
	for k, v := range more {
		body[k] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		return u, err
	}
	resp, err := http.Post(base+"/v1/chat/completions", "application/json", bytes.NewReader(b))
	if err != nil {
		return u, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return u, refusal(resp)
	}
	var answer struct {
		Usage usage `json:"usage"`
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.Usage, err
}

// ask ADDRESS WORD CACHED [FIELD=JSON…] asks a long question that begins with a
// word. CACHED is what of the prompt must have been found: all, some, or none.
func ask(ts *testscript.TestScript, _ bool, args []string) {
	more := map[string]any{}
	for _, f := range args[3:] {
		key, value, _ := strings.Cut(f, "=")
		more[key] = json.RawMessage(value)
	}
	u, err := answerUsage("http://"+args[0], longText(args[1], 1000), more)
	ts.Check(err)
	cached := map[bool]string{true: "some"}[u.Details.Cached > 0]
	switch {
	case u.Details.Cached == u.Prompt-1:
		cached = "all"
	case u.Details.Cached < 64: // the template begins every prompt
		cached = "none"
	}
	if cached != args[2] {
		ts.Fatalf("of %d tokens %d were cached, want %s", u.Prompt, u.Details.Cached, args[2])
	}
}

// waitstatus TEXT waits until 'ieg kv' says so.
func waitStatus(ts *testscript.TestScript, _ bool, args []string) {
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		t, err := admin.NewClient(ts.Getenv("IEG_ADMIN")).KV(context.Background())
		ts.Check(err)
		var b strings.Builder
		printKV(&b, &t)
		if strings.Contains(b.String(), args[0]) {
			return
		}
		select {
		case <-limit:
			ts.Fatalf("%q does not show:\n%s", args[0], b.String())
		case <-tick.C:
		}
	}
}

// computed is the number of tokens that engines report to have computed.
func computed(t *testing.T, base string) (sum int) {
	t.Helper()
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ieg_step_tokens_sum{") {
			_, value, _ := strings.Cut(lines.Text(), "} ")
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(x)
		}
	}
	return sum
}

// What clients are told to be cached is exactly what the engine did not
// compute, whichever tier it came from.
func TestCachedTokensAreThoseNotComputed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	data := t.TempDir()
	begin := func() (*serve.Server, *admin.Client) {
		srv, socket := synthNode(t, ctx, "--model", "m=synth:stop=0", "--slots", "2", "--ctx", "2048", "--data-dir", data, "--kv-host", "64MiB", "--kv-nvme", "256MiB")
		return srv, admin.NewClient(socket)
	}
	turn := func(srv *serve.Server, cl *admin.Client, word string) (cached int) {
		was := computed(t, srv.Base)
		u, err := answerUsage(srv.Base, longText(word, 1000), nil)
		if err != nil {
			t.Fatal(err)
		}
		// The answer may come before the loop has counted its last step; what
		// asks the loop for something comes after.
		if _, err := cl.FlushKV(ctx, admin.KVFlush{Within: 20 * time.Second}); err != nil {
			t.Fatal(err)
		}
		// The last token drawn is known, and never computed.
		if got, want := computed(t, srv.Base)-was, u.Prompt-u.Details.Cached+u.Completion-1; got != want {
			t.Errorf("%s: the engine computed %d tokens, the client was told of %d", word, got, want)
		}
		return u.Details.Cached
	}
	srv, cl := begin()
	for _, word := range []string{"first", "second", "third", "third", "first"} {
		turn(srv, cl, word)
	}
	kv, err := cl.KV(ctx)
	if err != nil || kv.Tokens.Device < 1000 || kv.Tokens.Host < 900 {
		t.Errorf("the texts did not come from the device and from host memory: %+v, %v", kv.Tokens, err)
	}
	if err := syscall.Kill(srv.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	srv.Stop()

	srv, cl = begin()
	limit := time.After(20 * time.Second)
	for up := false; !up; {
		kv, err := cl.KV(ctx)
		if up = kv.NVMe.Up; err != nil {
			t.Fatal(err)
		}
		select {
		case <-limit:
			t.Fatalf("the tier does not come up: %+v", kv.NVMe)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if n := turn(srv, cl, "second"); n < 900 {
		t.Errorf("after a kill only %d tokens came back", n)
	}
	if kv, err = cl.KV(ctx); err != nil || kv.Tokens.NVMe < 900 {
		t.Errorf("they did not come from the data folder: %+v, %v", kv.Tokens, err)
	}
}

func TestTierRows(t *testing.T) {
	var k admin.KVTiers
	if err := json.Unmarshal([]byte(`{
		"engines":[{"info":{"cells":1000,"model":{"name":"m"},"kv_bytes_per_token":128},"state":"ready","cells_used":250,"cells_idle":500,"kv_save_bytes_per_s":3e9,"kv_load_bytes_per_s":4e9},
			{"info":{"cells":10,"model":{"name":"r"},"kv_note":"recurrent"},"state":"ready"},
			{"info":{"cells":10,"model":{"name":"e","embedding":true},"kv_note":"the model keeps no KV"},"state":"ready"}],
		"host":{"bytes":1000000,"notes":["not locked: raise memlock"]},
		"nvme":{"up":true,"state":"up","folder":"/d/kv","encrypted":true,"blocks":1,"bytes":500,"size_bytes":1000,"disk_free_bytes":2000,"written_today_bytes":3000,"evicted":2,"write_bytes_per_s":1e9,"why":"the day's budget is spent"},
		"prompt_tokens":{"device":50,"host":25,"nvme":0,"computed":25},
		"kernel":{"host_pages":100,"host_pages_free":50,"host_page_bytes":10000,"host_blocks":7,"leases":[0,0,1],"moves":1,"moves_queued":4,
			"counts":{"saves":1,"saved_bytes":9000,"loads":2,"loaded_bytes":8000,"fetches_late":3,"diverged_tokens":6,"corrupt":1,"longest_copy_ns":1500000,"longest_copy_run_ns":900000}}}`), &k); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	printKV(&b, &k)
	want := `TIER    MODEL  FILL                           NOTE
device  m      750 of 1000 tokens  █████████  250 in use, 500 kept
device  r      0 of 10 tokens                 0 in use, 0 kept; stays on the device: recurrent
device  e      –                              an embedding model: it keeps no KV
host           500 kB of 1.00 MB   ██████     7 blocks, 1 pin
nvme           500 B of 1.00 kB    ██████     1 block; 2.00 kB of the disk free; 3.00 kB written within a day; encrypted; the day's budget is spent
  host: not locked: raise memlock

prompt tokens, by where their KV came from
  device    50  50.0 %  ████████████████
  host      25  25.0 %  ████████
  nvme      0   0.0 %   
  computed  25  25.0 %  ████████

speed          m: save 3.00 GB/s, load 4.00 GB/s; nvme: write 1.00 GB/s, read not measured
longest copy   1.50 ms beside streams, 900 µs of processor time
device → host  1 block, 9.00 kB
host → device  2 times, 8.00 kB
host → nvme    –
nvme → host    –
not done       3 nvme too late, 2 gave way in nvme, 1 corrupt
left behind    6 tokens of blocks that texts begin alike and then leave
under way      1 move, 4 more wait
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	line := "host 500 kB of 1.00 MB, nvme 500 B of 1.00 kB (the day's budget is spent); 25 tokens brought back"
	if got := kvLine(&k); got != line {
		t.Errorf("%q, want %q", got, line)
	}
	k.NVMe = admin.KVNVMe{Folder: "/d/kv", State: admin.NVMeDown, Why: "no space left"}
	if got, want := kvLine(&k), "host 500 kB of 1.00 MB, nvme down: no space left (it is tried again by itself); 25 tokens brought back"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	k = admin.KVTiers{Host: admin.KVHost{Off: "kv.host is 0"}}
	if got, want := kvLine(&k), "on the devices only: kv.host is 0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fmt.Sprint(tierRows(&k)[1]); !strings.Contains(got, "host  off") {
		t.Errorf("%q", got)
	}
}
