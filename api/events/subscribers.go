package events

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"

	"ieg/api/events/zmtp"
)

// message is what goes over the wire.
type message struct {
	topic   string
	seq     uint64
	payload []byte
}

func (m *message) bytes() int { return len(m.topic) + 8 + len(m.payload) }

func (m *message) frames() [][]byte {
	return [][]byte{[]byte(m.topic), binary.BigEndian.AppendUint64(nil, m.seq), m.payload}
}

// subscribers are the connections of the PUB socket.
type subscribers struct {
	mu      sync.Mutex
	all     map[*subscriber]bool
	dropped atomic.Uint64
}

// subscriber is one of them. Its topics are guarded by subscribers.mu.
type subscriber struct {
	queue  *queue[message]
	topics map[string]int // how often each is subscribed to
}

func (s *subscriber) wants(topic string) bool {
	for prefix := range s.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

// change adds or takes away a subscription.
func (s *subscriber) change(topic string, on bool) bool {
	if on {
		s.topics[topic]++
		return len(s.topics) <= TopicsMax
	}
	if s.topics[topic]--; s.topics[topic] <= 0 {
		delete(s.topics, topic)
	}
	return true
}

// wanted tells whether anyone would get a message of the topic.
func (h *subscribers) wanted(topic string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		if s.wants(topic) {
			return true
		}
	}
	return false
}

// send queues a message for everyone who wants it and has room.
func (h *subscribers) send(m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		if s.wants(m.topic) && !s.queue.put(m, m.bytes()) {
			h.dropped.Add(1)
		}
	}
}

func (h *subscribers) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// serve reads a peer's subscriptions until the connection ends.
func (h *subscribers) serve(c *zmtp.Conn) {
	s := &subscriber{queue: newQueue[message](SubscriberMessagesMax, SubscriberBytesMax), topics: map[string]int{}}
	h.mu.Lock()
	h.all[s] = true
	h.mu.Unlock()
	var writes sync.WaitGroup
	writes.Go(func() { s.write(c) })
	for {
		m, err := c.Read()
		if err != nil {
			break
		}
		topic, on, ok := zmtp.Subscription(m)
		if !ok || !h.subscribe(s, topic, on) {
			break
		}
	}
	h.mu.Lock()
	delete(h.all, s)
	h.mu.Unlock()
	s.queue.close()
	c.Close()
	writes.Wait()
}

func (h *subscribers) subscribe(s *subscriber, topic string, on bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.change(topic, on)
}

// write sends what waits; it closes a connection that takes nothing.
func (s *subscriber) write(c *zmtp.Conn) {
	for {
		m, ok := s.queue.get()
		if !ok {
			return
		}
		if c.Write(m.frames()...) != nil {
			c.Close()
			return
		}
	}
}
