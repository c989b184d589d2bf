package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where a node of this user listens: /run/ieg/ieg.sock where
// that folder can be written, else $XDG_RUNTIME_DIR/ieg.sock, else a folder
// of the user's own in the folder for temporary files.
func DefaultSocket() string {
	const system = "/run/ieg"
	if unix.Access(system, unix.W_OK) == nil {
		return filepath.Join(system, "ieg.sock")
	}
	if _, err := os.Stat(system); os.Geteuid() == 0 && errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(system, "ieg.sock")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "ieg.sock")
	}
	return filepath.Join(os.TempDir(), "ieg-"+strconv.Itoa(os.Geteuid()), "ieg.sock")
}

// ClientSockets lists where a client looks for a node, in this order.
func ClientSockets() []string {
	paths := []string{DefaultSocket()}
	const system = "/run/ieg/ieg.sock"
	if paths[0] != system {
		paths = append(paths, system)
	}
	return paths
}

// Listener is the node's end of the socket. Close removes the file.
type Listener struct {
	net.Listener
	lock *os.File
	path string
}

// Listen takes the socket at path. A file left by a dead node is replaced; a
// node that lives is ErrAlreadyRunning with its pid. group, if not empty, may
// connect too.
func Listen(path, group string) (*Listener, error) {
	if len(path) > SocketPathMax {
		return nil, fmt.Errorf("admin socket %s: the path has %d bytes, %d fit; choose a shorter one by --admin", path, len(path), SocketPathMax)
	}
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	if err := prepareDir(filepath.Dir(path), gid); err != nil {
		return nil, err
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path, gid)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Listener{Listener: l, lock: lock, path: path}, nil
}

func groupID(group string) (int, error) {
	if group == "" {
		return -1, nil
	}
	if n, err := strconv.Atoi(group); err == nil && n >= 0 {
		return n, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return -1, fmt.Errorf("admin group %q: %w; create it or choose another by --admin-group", group, err)
	}
	return strconv.Atoi(g.Gid)
}

func prepareDir(dir string, gid int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("admin socket: %w; choose another place by --admin", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	st := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	if st.Uid != uint32(os.Geteuid()) && st.Uid != 0 {
		return fmt.Errorf("admin socket: %s belongs to uid %d; choose another place by --admin", dir, st.Uid)
	}
	if mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("admin socket: everybody can write in %s; choose another place by --admin", dir)
	}
	if gid >= 0 && st.Uid == uint32(os.Geteuid()) && mode.Perm() == 0o700 {
		if err := os.Chown(dir, -1, gid); err != nil {
			return fmt.Errorf("admin socket: give %s to group %d: %w", dir, gid, err)
		}
		return os.Chmod(dir, 0o750)
	}
	return nil
}

// lockFile holds the claim to the socket for as long as the node lives: the
// operating system drops it with the process, however that ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w; choose another place by --admin", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, alreadyRunning(path)
	}
	return f, nil
}

func alreadyRunning(path string) error {
	if pid := ListenerPID(path); pid > 0 {
		return fmt.Errorf("%w on %s (pid %d); stop it by 'ieg down' or choose another socket by --admin", ErrAlreadyRunning, path, pid)
	}
	return fmt.Errorf("%w on %s; stop it by 'ieg down' or choose another socket by --admin", ErrAlreadyRunning, path)
}

func listenLocked(path string, gid int) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("admin socket: %s exists and is no socket; remove it or choose another place by --admin", path)
		}
		if ListenerPID(path) > 0 {
			return nil, alreadyRunning(path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("admin socket: replace the stale file: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w; choose another place by --admin", err)
	}
	// Who connects before the mode is set meets the check of the credentials.
	mode := fs.FileMode(0o600)
	if gid >= 0 {
		mode = 0o660
		err = os.Chown(path, -1, gid)
	}
	if err = errors.Join(err, os.Chmod(path, mode)); err != nil {
		l.Close()
		return nil, fmt.Errorf("admin socket: set owner and mode: %w", err)
	}
	return l, nil
}

// ListenerPID is the pid of the process that listens on path, 0 if none does.
func ListenerPID(path string) int {
	c, err := net.DialTimeout("unix", path, DialTimeout)
	if err != nil {
		return 0
	}
	defer c.Close()
	cred, err := credentials(c)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

// Close stops listening, removes the socket and gives up the claim to it.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.lock.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Path is where the listener listens.
func (l *Listener) Path() string { return l.path }

func credentials(c net.Conn) (*unix.Ucred, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: no Unix socket", ErrPermission)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var got error
	err = raw.Control(func(fd uintptr) {
		cred, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, got)
}

// WaitListening returns once somebody listens on path, or false at the end of
// the wait or when stop is closed.
func WaitListening(path string, wait time.Duration, stop <-chan struct{}) bool {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if ListenerPID(path) > 0 {
			return true
		}
		select {
		case <-deadline.C:
			return false
		case <-stop:
			return false
		case <-poll.C:
		}
	}
}

const pollInterval = 20 * time.Millisecond
