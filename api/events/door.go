package events

import (
	"net"
	"sync"
	"time"

	"ieg/api/events/zmtp"
)

// door accepts connections of peers that greet in time.
type door struct {
	listener net.Listener
	zmtp     zmtp.Config
	most     int
	serve    func(*zmtp.Conn) // reads until the connection ends

	mu    sync.Mutex
	conns map[net.Conn]bool // open ones
	end   chan struct{}
	ended sync.WaitGroup
}

// openDoor listens, and serves from now on.
func openDoor(addr string, most int, cfg zmtp.Config, serve func(*zmtp.Conn)) (*door, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	d := &door{listener: l, zmtp: cfg, most: most, serve: serve, conns: map[net.Conn]bool{}, end: make(chan struct{})}
	d.ended.Go(d.accept)
	return d, nil
}

func (d *door) accept() {
	for {
		c, err := d.listener.Accept()
		if err == nil {
			if d.enter(c) {
				d.ended.Go(func() { d.talk(c) })
			}
			continue
		}
		pause := time.NewTimer(AcceptWait)
		select {
		case <-d.end:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// enter takes a connection in, or closes it.
func (d *door) enter(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil || len(d.conns) >= d.most {
		c.Close()
		return false
	}
	d.conns[c] = true
	return true
}

func (d *door) leave(c net.Conn) {
	c.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

func (d *door) talk(c net.Conn) {
	defer d.leave(c)
	if c.SetDeadline(time.Now().Add(HandshakeWait)) != nil {
		return
	}
	conn, err := zmtp.Accept(c, d.zmtp)
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return
	}
	d.serve(conn)
}

// close ends all connections and waits for them.
func (d *door) close() error {
	close(d.end)
	err := d.listener.Close()
	d.mu.Lock()
	for c := range d.conns {
		c.Close()
	}
	d.conns = nil
	d.mu.Unlock()
	d.ended.Wait()
	return err
}
