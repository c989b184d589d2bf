package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Config says what the listening socket is.
type Config struct {
	Type  string   // "PUB", "ROUTER"
	Peers []string // types of sockets that may connect to it
	// WriteWait bounds the time of one write: a peer that does not read for so
	// long has lost its connection.
	WriteWait time.Duration
}

// Conn is an open connection. One goroutine may read while others write.
type Conn struct {
	net  net.Conn
	r    *bufio.Reader
	wait time.Duration
	mu   sync.Mutex // writes
}

// Accept exchanges greetings with the peer that opened c. It waits for the peer:
// set a deadline on c, and clear it after.
func Accept(c net.Conn, cfg Config) (*Conn, error) {
	conn := &Conn{net: c, r: bufio.NewReader(c), wait: cfg.WriteWait}
	if _, err := c.Write(append(greeting(), ready(cfg.Type)...)); err != nil {
		return nil, err
	}
	if err := checkGreeting(conn.r); err != nil {
		return nil, err
	}
	m, err := readMessage(conn.r)
	if err != nil {
		return nil, err
	}
	if m.Command != "READY" {
		return nil, fmt.Errorf("the peer sent %q, not READY", m.Command)
	}
	peer, err := socketType(m.Data)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(cfg.Peers, peer) {
		return nil, fmt.Errorf("a %s socket can't connect to a %s socket", peer, cfg.Type)
	}
	return conn, nil
}

// greeting is ours: signature, version 3.1, mechanism NULL.
func greeting() []byte {
	var g [64]byte
	g[0], g[8], g[9], g[10], g[11] = 0xff, 1, 0x7f, 3, 1
	copy(g[12:], "NULL")
	return g[:]
}

func ready(own string) []byte {
	const name = "Socket-Type"
	props := append([]byte{byte(len(name))}, name...)
	props = binary.BigEndian.AppendUint32(props, uint32(len(own)))
	return appendCommand(nil, "READY", append(props, own...))
}

func checkGreeting(r io.Reader) error {
	var g [64]byte
	if _, err := io.ReadFull(r, g[:]); err != nil {
		return err
	}
	var null [20]byte
	copy(null[:], "NULL")
	switch {
	case g[0] != 0xff || g[9]&1 == 0:
		return errors.New("the peer does not speak ZMTP")
	case g[10] < 3:
		return fmt.Errorf("the peer speaks ZMTP %d; at least 3", g[10])
	case !slices.Equal(g[12:32], null[:]):
		return fmt.Errorf("the peer wants the mechanism %q; there is NULL only", g[12:32])
	}
	return nil
}

// Read returns the next message or command. It answers PING by itself.
func (c *Conn) Read() (Message, error) {
	for {
		m, err := readMessage(c.r)
		if err != nil {
			return m, err
		}
		switch m.Command {
		case "PING": // a TTL of two bytes, and what is wanted back
			if len(m.Data) < 2 || len(m.Data) > 2+pingContextMax {
				return m, errors.New("PING of a wrong length")
			}
			if err := c.write(net.Buffers{appendCommand(nil, "PONG", m.Data[2:])}); err != nil {
				return m, err
			}
		case "PONG":
		case "ERROR":
			return m, fmt.Errorf("the peer reports an error: %q", m.Data)
		default:
			return m, nil
		}
	}
}

// Write sends one message.
func (c *Conn) Write(frames ...[]byte) error {
	heads := make([]byte, 0, 9*len(frames)) // one piece, so that the parts below stay valid
	bufs := make(net.Buffers, 0, 2*len(frames))
	for i, f := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		at := len(heads)
		heads = appendHead(heads, flags, len(f))
		bufs = append(bufs, heads[at:], f)
	}
	return c.write(bufs)
}

func (c *Conn) write(bufs net.Buffers) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.net.SetWriteDeadline(time.Now().Add(c.wait)); err != nil {
		return err
	}
	_, err := bufs.WriteTo(c.net)
	return err
}

// Close ends the connection; reads and writes under way fail.
func (c *Conn) Close() error { return c.net.Close() }
