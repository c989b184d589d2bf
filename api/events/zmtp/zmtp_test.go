package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

var (
	pub    = Config{Type: "PUB", Peers: []string{"SUB", "XSUB"}, WriteWait: time.Second}
	router = Config{Type: "ROUTER", Peers: []string{"REQ", "DEALER"}, WriteWait: time.Second}
)

// wire is a connection that a peer has filled and that keeps what is written.
type wire struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error)       { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)      { return w.out.Write(b) }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func sent(parts ...[]byte) *wire { return &wire{in: bytes.NewReader(slices.Concat(parts...))} }

func frame(flags byte, body string) []byte {
	return append(appendHead(nil, flags, len(body)), body...)
}

// hello is what a SUB socket begins with.
func hello() []byte { return append(greeting(), ready("SUB")...) }

// An independent implementation talks to ours, both ways.
func TestPeer(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		peer func(context.Context, ...zmq4.Option) zmq4.Socket
		send [][]byte
		want Message
	}{
		{pub, zmq4.NewSub, nil, Message{Frames: [][]byte{[]byte("\x01kv@")}}},
		{router, zmq4.NewDealer, [][]byte{nil, []byte("12345678")}, Message{Frames: [][]byte{{}, []byte("12345678")}}},
		{router, zmq4.NewReq, [][]byte{[]byte("x")}, Message{Frames: [][]byte{{}, []byte("x")}}},
	} {
		t.Run(c.cfg.Type, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			peer := c.peer(ctx)
			defer peer.Close()
			got := make(chan zmq4.Msg, 1)
			go func() {
				err := peer.Dial("tcp://" + l.Addr().String())
				if c.send == nil {
					err = errors.Join(err, peer.SetOption(zmq4.OptionSubscribe, "kv@"))
				} else {
					err = errors.Join(err, peer.SendMulti(zmq4.NewMsgFrom(c.send...)))
				}
				m, err2 := peer.Recv()
				if err = errors.Join(err, err2); err != nil {
					t.Error(err)
				}
				got <- m
			}()
			raw, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			conn, err := Accept(raw, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			m, err := conn.Read()
			if err != nil || !slices.EqualFunc(m.Frames, c.want.Frames, bytes.Equal) {
				t.Errorf("read %q, %v; want %q", m.Frames, err, c.want.Frames)
			}
			long := bytes.Repeat([]byte("kv"), 5000)
			out := [][]byte{{}, []byte("kv@here"), long}
			if c.send == nil {
				out = out[1:]
			}
			if err := conn.Write(out...); err != nil {
				t.Fatal(err)
			}
			if m := <-got; !bytes.Equal(m.Frames[len(m.Frames)-1], long) || string(m.Frames[len(m.Frames)-2]) != "kv@here" {
				t.Errorf("the peer read %d frames", len(m.Frames))
			}
		})
	}
}

func TestSubscriptions(t *testing.T) {
	w := sent(hello(),
		frame(0, "\x01a"), frame(0, "\x00a"), // ZMTP 3.0
		appendCommand(nil, "SUBSCRIBE", []byte("b")), appendCommand(nil, "PING", []byte("\x00\x0acontext")),
		appendCommand(nil, "CANCEL", []byte("b")),
		frame(0, "\x02a"), frame(flagMore, "\x01"), frame(0, "a"), appendCommand(nil, "OTHER", nil))
	c, err := Accept(w, pub)
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		topic  string
		on, ok bool
	}
	for i, want := range []change{{"a", true, true}, {"a", false, true}, {"b", true, true}, {"b", false, true}, {}, {}, {}} {
		m, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		var got change
		if got.topic, got.on, got.ok = Subscription(m); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if !bytes.HasSuffix(w.out.Bytes(), appendCommand(nil, "PONG", []byte("context"))) {
		t.Errorf("no PONG in %q", w.out.Bytes())
	}
}

func TestRefusals(t *testing.T) {
	changed := func(at int, b byte) []byte {
		h := hello()
		h[at] = b
		return h
	}
	huge := binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<62)
	many := bytes.Repeat(frame(flagMore, ""), FramesMax+1)
	for want, w := range map[string]*wire{
		"unexpected EOF":                     sent(hello()[:70]),
		"does not speak":                     sent(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 8)),
		"speaks ZMTP 2":                      sent(changed(10, 2)),
		"mechanism":                          sent(changed(12, 'C')),
		"not READY":                          sent(greeting(), appendCommand(nil, "HELLO", nil)),
		"can't connect":                      sent(greeting(), ready("PUB")),
		"without a socket type":              sent(greeting(), appendCommand(nil, "READY", nil)),
		"READY is cut short":                 sent(greeting(), appendCommand(nil, "READY", []byte("\x0bSocket-Type\xff\xff\xff\xff"))),
		"command without a name":             sent(greeting(), frame(flagCommand, "")),
		"frame of 4611686018427387904 bytes": sent(hello(), huge),
		"more than 8 frames":                 sent(hello(), many),
		"frame with flags 0xf8":              sent(hello(), []byte{0xf8, 0}),
		"command inside a message":           sent(hello(), frame(flagMore, ""), appendCommand(nil, "PONG", nil)),
		"PING of a wrong length":             sent(hello(), appendCommand(nil, "PING", []byte{1})),
		"reports an error":                   sent(hello(), appendCommand(nil, "ERROR", []byte("\x02no"))),
	} {
		c, err := Accept(w, pub)
		if err == nil {
			_, err = c.Read()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Whatever a peer sends, it is refused or read within the bounds.
func FuzzPeer(f *testing.F) {
	f.Add(hello())
	f.Add(slices.Concat(hello(), frame(0, "\x01kv@"), appendCommand(nil, "SUBSCRIBE", []byte("kv@"))))
	f.Add(slices.Concat(hello(), appendCommand(nil, "PING", []byte("\x00\x0acontext")), frame(flagMore, ""), frame(0, "12345678")))
	f.Fuzz(func(t *testing.T, in []byte) {
		w := sent(in)
		c, err := Accept(w, pub)
		if err != nil {
			return
		}
		for {
			m, err := c.Read()
			if err != nil {
				return
			}
			if len(m.Frames) > FramesMax || m.Command != "" && len(m.Frames) > 0 {
				t.Fatalf("read %+v", m)
			}
			if topic, on, ok := Subscription(m); !ok && (topic != "" || on) {
				t.Fatalf("no subscription, but %q %v", topic, on)
			}
		}
	})
}
