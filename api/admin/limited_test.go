package admin

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

func dialAdmin(t *testing.T, c *Client) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", c.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// prompt asks for the status on a connection, in two parts: the first when it
// is called, the rest when the returned function is.
func prompt(t *testing.T, conn net.Conn) (rest func()) {
	t.Helper()
	if _, err := fmt.Fprint(conn, "GET /v1/status HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := fmt.Fprintf(conn, "Host: %s\r\n\r\n", hostName); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// TestSilentConnections: connections that ask nothing keep nobody out, before
// their first request and after it, and don't end one that is asking.
func TestSilentConnections(t *testing.T) {
	c := serve(t, &fakeNode{})
	slow := dialAdmin(t, c)
	finish := prompt(t, slow)
	idle := dialAdmin(t, c)
	prompt(t, idle)()
	for range 1500 {
		dialAdmin(t, c)
	}
	start := time.Now()
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), HeaderTimeout)
		if _, err := c.Status(ctx); err != nil {
			t.Errorf("status among silent connections: %v", err)
		}
		cancel()
	}
	if d := time.Since(start); d >= HeaderTimeout {
		t.Errorf("status took %v", d)
	}
	finish()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the connection that was silent for longest was kept")
	}
}

// TestBusyConnections: as many as may be open all ask something: the next one
// waits, and is let in when one of them falls silent or leaves.
func TestBusyConnections(t *testing.T) {
	for _, leave := range []bool{false, true} {
		c := serve(t, &fakeNode{})
		finish := make([]func(), ConnectionsMax)
		conns := make([]net.Conn, ConnectionsMax)
		for i := range conns {
			conns[i] = dialAdmin(t, c)
			finish[i] = prompt(t, conns[i])
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Status(context.Background())
			done <- err
		}()
		if leave {
			conns[7].Close()
		} else {
			finish[7]()
		}
		if err := <-done; err != nil {
			t.Errorf("after one left (%t): %v", leave, err)
		}
		for i := range finish {
			if i != 7 {
				finish[i]()
			}
		}
	}
}

// TestBurst: more clients at once than connections may be open are all
// answered.
func TestBurst(t *testing.T) {
	path := serve(t, &fakeNode{}).Path()
	const clients = 4 * ConnectionsMax
	done := make(chan error, clients)
	for range clients {
		go func() {
			_, err := NewClient(path).Status(context.Background())
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// cuts are ways in which a node ends a connection without an answer.
var cuts = []func(*net.UnixConn){
	func(*net.UnixConn) {},
	func(c *net.UnixConn) { _ = c.CloseRead() },
	func(c *net.UnixConn) { _ = c.CloseWrite() },
	func(c *net.UnixConn) { _, _ = c.Read(make([]byte, 1)) },
	func(c *net.UnixConn) { _, _ = c.Read(make([]byte, 1<<10)) },
}

// TestCutOff: a question whose connection ends without an answer is asked
// again, whatever the client was doing when it ended.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 200
	cut := 0
	done := make(chan error, 1)
	go func() {
		for i := range rounds * triesMax {
			conn, err := l.AcceptUnix()
			if err != nil {
				done <- err
				return
			}
			if i%triesMax < triesMax-1 {
				cuts[cut%len(cuts)](conn)
				cut++
				conn.Close()
				continue
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
				t.Errorf("round %d: %v", i/triesMax, err)
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			conn.Close()
		}
		done <- nil
	}()
	for i := range rounds {
		if _, err := NewClient(path).Status(t.Context()); err != nil {
			t.Errorf("round %d: %v", i, err)
			break
		}
	}
	l.Close()
	if err := <-done; err != nil && !t.Failed() {
		t.Error(err)
	}
}
