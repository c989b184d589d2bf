package events

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"ieg"
	"ieg/api/events/zmtp"
)

// A consumer that folds what it reads has the same sets of blocks as one that
// folds the events themselves, in both forms.
func TestConsumersKnowTheTiers(t *testing.T) {
	for _, form := range []string{"maps", "arrays"} {
		t.Run(form, func(t *testing.T) {
			p := newPublisher(t, "tcp://127.0.0.1:0?events="+form)
			closing(t, p)
			c := consume(t, p, "kv@")
			want, got := view{}, view{"m GPU": {1: true}} // from an earlier life
			var seq uint64
			for i, turn := range work(7, 300) {
				loop(p, turn)
				want.twin(turn)
				for n := 0; n < len(turn); seq++ {
					topic, s, payload := c.next()
					_, events, err := decode(payload)
					if err != nil || s != seq || !strings.HasPrefix(topic, "kv@10.0.0.1:8080@") {
						t.Fatalf("turn %d: %s number %d, want %d: %v", i, topic, s, seq, err)
					}
					for _, e := range events {
						n += len(e.Hashes)
					}
					got.fold(topic, events)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("turn %d:\n%v\nwant\n%v", i, got, want)
				}
			}
			if st := p.Stats(); st.Dropped+st.Missed != 0 || st.Messages != seq || st.Subscribers != 1 {
				t.Errorf("%+v after %d messages", st, seq)
			}
		})
	}
}

func TestTopics(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	c := consume(t, p, "kv@10.0.0.1:8080@b")
	loop(p, append(chain(1, "a", 1, 0), chain(2, "b", 1, 0)...))
	loop(p, chain(3, "b", 2, 0))
	for _, want := range []uint64{1, 2} {
		if topic, seq, _ := c.next(); topic != "kv@10.0.0.1:8080@b" || seq != want {
			t.Errorf("%s number %d, want %d", topic, seq, want)
		}
	}
	if n := p.Stats().Messages; n != 2 {
		t.Errorf("%d messages were encoded, of which 2 were wanted", n)
	}
}

// raw greets, subscribes to everything and reads nothing more.
func raw(t *testing.T, p *Publisher) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	hello := make([]byte, 64)
	copy(hello, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL")
	hello = append(hello, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"...)
	hello[65] = byte(len(hello) - 66)
	if _, err := c.Write(append(hello, 0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	return c
}

// A subscriber that does not read loses messages; nobody else does, and what
// waits for it is bounded.
func TestSlowSubscriber(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	raw(t, p)
	await(t, "the slow one", func() bool { return p.subs.wanted("") })
	c := consume(t, p, "kv@")
	turn := chain(1, "m", 1024, 0) // 1 MB or so
	for i := 0; p.Stats().Missed == 0; i++ {
		if loop(p, turn); i == 100 {
			t.Fatal("the slow one reads everything")
		}
		if _, seq, _ := c.next(); seq != uint64(i) {
			t.Fatalf("number %d after %d", seq, i)
		}
	}
	p.subs.mu.Lock()
	defer p.subs.mu.Unlock()
	for s := range p.subs.all {
		s.queue.mu.Lock()
		if s.queue.bytes > SubscriberBytesMax {
			t.Errorf("%d bytes wait", s.queue.bytes)
		}
		s.queue.mu.Unlock()
	}
}

// While nothing leaves, the loop goes on, memory is bounded, and the numbers
// tell what is missing.
func TestLoopNeverWaits(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	c := consume(t, p, "kv@")
	turn := chain(1, "m", 1000, 0)
	p.subs.mu.Lock() // the encoder stops here
	const turns = 150
	for range turns {
		loop(p, turn)
	}
	p.queue.mu.Lock()
	if p.queue.bytes > QueueBytesMax || len(p.queue.items) < 10 {
		t.Errorf("%d batches of %d bytes wait", len(p.queue.items), p.queue.bytes)
	}
	p.queue.mu.Unlock()
	p.subs.mu.Unlock()
	dropped := p.dropped.Load()
	if dropped == 0 {
		t.Fatal("all of it found room")
	}
	await(t, "the rest", func() bool { return p.Stats().Messages+dropped == turns })
	done := make(chan uint64)
	go func() { // it reads on while the test looks
		n := uint64(1)
		for _, seq, _ := c.next(); seq != turns; _, seq, _ = c.next() {
			n++
		}
		done <- n
	}()
	await(t, "room", func() bool { return !p.subs.wait() })
	loop(p, turn)
	missed, read := p.Stats().Missed, <-done
	if want := turns + 1 - dropped - missed; read != want {
		t.Errorf("read %d messages, want %d", read, want)
	}
}

// Without a subscriber nothing is encoded or kept.
func TestNobodyListens(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	for range 20 {
		loop(p, chain(1, "m", 100, 0))
	}
	await(t, "an empty queue", func() bool { return !p.queue.waits() })
	if st := p.Stats(); st != (Stats{}) {
		t.Errorf("%+v", st)
	}
}

func (q *queue[T]) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0
}

// wait tells whether a message waits for a subscriber.
func (h *subscribers) wait() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		if s.queue.waits() {
			return true
		}
	}
	return false
}

func TestReplay(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0?replay=0")
	closing(t, p)
	const turns = 20
	for i := range turns {
		loop(p, chain(uint64(i), "m", 1, 0))
	}
	await(t, "the messages", func() bool { return p.Stats().Messages == turns })
	for _, envelope := range [][][]byte{nil, {{}}} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		sock := zmq4.NewDealer(ctx)
		defer sock.Close()
		if err := sock.Dial("tcp://" + p.ReplayAddr().String()); err != nil {
			t.Fatal(err)
		}
		for _, from := range []uint64{0, 15, 20, math.MaxUint64} {
			request := append(envelope, binary.BigEndian.AppendUint64(nil, from))
			if err := sock.SendMulti(zmq4.NewMsgFrom(request...)); err != nil {
				t.Fatal(err)
			}
			for want := from; ; want++ {
				m, err := sock.Recv()
				if err != nil || len(m.Frames) != len(envelope)+3 {
					t.Fatalf("%d frames, %v", len(m.Frames), err)
				}
				f := m.Frames[len(envelope):]
				seq := binary.BigEndian.Uint64(f[1])
				if seq == math.MaxUint64 {
					if len(f[2]) != 0 || want != max(from, turns) {
						t.Errorf("the end after %d messages: %q", want, f)
					}
					break
				}
				if _, events, err := decode(f[2]); err != nil || seq != want || string(f[0]) != "kv@10.0.0.1:8080@m" || len(events) == 0 {
					t.Fatalf("number %d, want %d: %v", seq, want, err)
				}
			}
		}
	}
}

func TestReplaysAreBounded(t *testing.T) {
	var r replays
	for i := range uint64(ReplayMessagesMax + 100) {
		r.keep(message{seq: i})
	}
	if all := r.since(0); len(all) != ReplayMessagesMax || all[0].seq != 100 {
		t.Errorf("%d messages from %d", len(all), all[0].seq)
	}
	large := make([]byte, 1<<20)
	for i := range uint64(100) {
		r.keep(message{seq: 20_000 + i, payload: large})
	}
	if all := r.since(0); len(all) != ReplayBytesMax>>20-1 || r.bytes > ReplayBytesMax || all[len(all)-1].seq != 20_099 {
		t.Errorf("%d messages of %d bytes", len(all), r.bytes)
	}
}

// Peers that say nothing, or nonsense, or are too many, are in nobody's way,
// and nothing is left of them.
func TestBadPeers(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPublisher(t, "tcp://127.0.0.1:0?replay=0")
	var conns []net.Conn
	for i := range SubscribersMax - 1 {
		c, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if i%2 == 0 {
			if _, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\n", 10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := consume(t, p, "kv@")
	loop(p, chain(1, "m", 1, 0))
	if _, seq, _ := c.next(); seq != 0 {
		t.Errorf("number %d", seq)
	}
	c.sock.Close()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		c.Close()
	}
	await(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+2 }) // zmq4 leaves some
}

func TestTooManyConnections(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	for range SubscribersMax {
		raw(t, p)
	}
	await(t, "all of them", func() bool { return p.Stats().Subscribers == SubscribersMax })
	c := raw(t, p)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("one more is kept waiting")
	}
	if n := p.Stats().Subscribers; n != SubscribersMax {
		t.Errorf("%d subscribers", n)
	}
}

func TestPortTaken(t *testing.T) {
	p := newPublisher(t, "tcp://127.0.0.1:0")
	closing(t, p)
	_, err := New(Config{Endpoint: Endpoint{Publish: "127.0.0.1:0", Replay: p.Addr().String()}})
	if err == nil || !strings.Contains(err.Error(), "can't be published on "+p.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("12345678"), []byte(""), uint8(2))
	f.Add([]byte("12345678"), []byte("x"), uint8(1))
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		m := zmtp.Message{Frames: [][]byte{b, a, b}[:n%4]}
		seq, envelope, ok := parseRequest(m)
		if !ok {
			if seq != 0 || envelope != nil {
				t.Fatalf("refused, but %d %q", seq, envelope)
			}
			return
		}
		last := m.Frames[len(m.Frames)-1]
		if len(envelope)+1 != len(m.Frames) || binary.BigEndian.Uint64(last) != seq || len(envelope) == 1 && len(envelope[0]) != 0 {
			t.Fatalf("%q is read as %d after %q", m.Frames, seq, envelope)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	p := newPublisher(b, "tcp://127.0.0.1:0")
	closing(b, p)
	turn := chain(1, "m", 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		loop(p, turn)
	}
}

func BenchmarkPayload(b *testing.B) {
	for name, form := range map[string]Form{"maps": Maps, "arrays": Arrays} {
		b.Run(name, func(b *testing.B) {
			enc := newEncoder(form)
			turn := batch{at: time.Now(), model: "m", events: chain(1, "m", 64, 0)}
			b.SetBytes(64 * ieg.BlockTokens * 4)
			b.ReportAllocs()
			for b.Loop() {
				enc.payload(&turn)
			}
		})
	}
}
