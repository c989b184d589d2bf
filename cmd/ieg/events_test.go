package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// A chat of more than a block is told as stored on the device, then in memory,
// then in the data folder, with the same hash and tokens.
func TestKVEvents(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "tcp://" + l.Addr().String()
	l.Close()
	srv, _ := synthNode(t, ctx, "--model", "m=synth:stop=400", "--ctx", "2048", "--kv-host", "32MiB", "--kv-nvme", "64MiB", "--kv-events", at)
	sub := zmq4.NewSub(ctx)
	defer sub.Close()
	if err := sub.Dial(at); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "kv@"+strings.TrimPrefix(srv.Base, "http://")+"@m"); err != nil {
		t.Fatal(err)
	}
	ask := func(text, more string) {
		body := `{"messages":[{"role":"user","content":"` + strings.Repeat(text, 60) + `"}],"max_tokens":400` + more + `}`
		resp, err := http.Post(srv.Base+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
	ask("Tell nobody of it. ", `,"store":false`)
	ask("Say more about it. ", "")
	texts := map[uint64]bool{}    // first blocks
	tokens := map[uint64]string{} // of a block, as first told
	media := map[uint64]string{}  // of a block, in order
	down, device := 0, map[uint64]bool{}
	for killed := false; !killed || len(device) > 0; {
		m, err := sub.Recv()
		if err != nil {
			t.Fatalf("%v; told so far: %v, on the device %d\n%s", err, media, len(device), srv.Output())
		}
		for _, e := range kvEvents(t, m.Frames[2]) {
			if e.Type == "BlockStored" && e.Parent == nil {
				texts[e.Hashes[0]] = true
			}
			for i, h := range e.Hashes {
				if e.Medium == "GPU" {
					device[h] = true
				}
				if e.Type == "BlockRemoved" {
					delete(device, h)
					continue
				}
				media[h] = strings.TrimSpace(media[h] + " " + e.Medium)
				text := fmt.Sprint(e.Tokens[i*e.Size : (i+1)*e.Size])
				if tokens[h] == "" {
					tokens[h] = text
				}
				if tokens[h] != text {
					t.Errorf("block %x has other tokens in %s", h, e.Medium)
				}
				if media[h] == "GPU CPU STORAGE" && e.Size == 256 {
					down++
				}
			}
		}
		if down > 0 && !killed {
			killed = true
			signalChildren(t, srv, syscall.SIGKILL)
		}
	}
	if len(texts) != 1 {
		t.Errorf("%d texts are told of; one is nobody's business", len(texts))
	}
}

// kvEvent is what the test reads of an event.
type kvEvent struct {
	Type   string   `msgpack:"type"`
	Hashes []uint64 `msgpack:"block_hashes"`
	Parent *uint64  `msgpack:"parent_block_hash"`
	Tokens []uint32 `msgpack:"token_ids"`
	Size   int      `msgpack:"block_size"`
	Medium string   `msgpack:"medium"`
}

func kvEvents(t *testing.T, payload []byte) (events []kvEvent) {
	var batch []msgpack.RawMessage
	if err := msgpack.Unmarshal(payload, &batch); err != nil {
		t.Fatal(err)
	}
	if err := msgpack.Unmarshal(batch[1], &events); err != nil {
		t.Fatal(err)
	}
	return events
}

// A wrong address is told before anything is loaded.
func TestKVEventsRefused(t *testing.T) {
	for at, want := range map[string]string{
		"5557":                              "such as tcp://127.0.0.1:5557",
		"tcp://127.0.0.1:5557?events=proto": "unknown option events=proto",
		"tcp://192.0.2.1:5557":              "choose another address by --kv-events",
	} {
		dir := t.TempDir()
		out, err := exec.Command(ownPath(t), "up", "--model", "synth:", "--listen", "127.0.0.1:0", "--data-dir", dir+"/d", "--admin", dir+"/s", "--kv-events", at).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", at, err, out)
		}
	}
}
