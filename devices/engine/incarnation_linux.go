package engine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
)

// incarnation is one process of a Child. c.mu guards what changes.
type incarnation struct {
	c      *Child
	epoch  ieg.Epoch
	cmd    *exec.Cmd
	step   *net.UnixConn
	ctl    *net.UnixConn
	out    *outbox // step plane
	ctlOut *outbox
	calls  *calls
	tail   *tail

	greeted  bool        // read only by the reader
	greeting *time.Timer // kills a child that says no hello

	backend string // read once up
	up      bool
	upAt    time.Time
	busy    bool       // a step is in flight
	running ieg.StepID // the step
	err     error      // why the connection ended
	killed  string     // reason given to kill
	dead    bool       // the process has ended; its number may be used again
	linger  *time.Timer
}

// spawn starts the process and sends it hello and what to load.
func (c *Child) spawn(epoch ieg.Epoch) (started *incarnation, err error) {
	if len(c.cfg.Command) == 0 {
		return nil, Permanent(fmt.Errorf("no command to run the engine with"))
	}
	inc := &incarnation{c: c, epoch: epoch, tail: &tail{}}
	var files [2]*os.File
	defer func() {
		for _, f := range files {
			f.Close() // nil is refused, not a fault
		}
		if err != nil {
			inc.release()
		}
	}()
	if inc.step, inc.out, files[0], err = plane(); err != nil {
		return nil, err
	}
	if inc.ctl, inc.ctlOut, files[1], err = plane(); err != nil {
		return nil, err
	}
	inc.calls = newCalls(inc.ctlOut)
	if err := inc.greet(); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.cfg.Command[0], c.cfg.Command[1:]...)
	cmd.Env = append(os.Environ(), c.cfg.Env...)
	cmd.Stdout, cmd.Stderr = inc.tail, inc.tail
	cmd.ExtraFiles = files[:]
	if c.cfg.Arena != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.cfg.Arena)
	}
	cmd.WaitDelay = stderrWait
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start of the engine: %w", err)
	}
	inc.cmd = cmd
	// Best effort: without it Linux may choose the node when memory ends.
	_ = os.WriteFile("/proc/"+strconv.Itoa(inc.pid())+"/oom_score_adj", []byte(strconv.Itoa(oomScoreAdj)), 0)
	inc.greeting = time.AfterFunc(helloWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		inc.kill(fmt.Sprintf("no hello within %v: is %q the engine's command?", helloWait, c.cfg.Command))
	})
	return inc, nil
}

// plane makes one connection: the node's end, and the child's as a file.
func plane() (*net.UnixConn, *outbox, *os.File, error) {
	fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fd[1]), "engine")
	ours := os.NewFile(uintptr(fd[0]), "node")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, theirs, fmt.Errorf("socket pair: %w", err)
	}
	out, err := newOutbox(conn.(*net.UnixConn))
	return conn.(*net.UnixConn), out, theirs, err
}

// greet sends what opens both planes; the sockets keep it until the child
// reads.
func (inc *incarnation) greet() error {
	h := hello{Version: protocolVersion, Plane: stepPlane, Engine: inc.c.cfg.ID, Epoch: inc.epoch}
	first, err := closeFrame(appendHello(openFrame(nil, frameHello), h), 0)
	if err != nil {
		return err
	}
	spec := inc.c.cfg.Spec
	spec.ArenaBytes, spec.ArenaPageBytes = 0, 0
	if inc.c.cfg.Arena != nil {
		spec.ArenaBytes, spec.ArenaPageBytes = inc.c.cfg.ArenaBytes, inc.c.cfg.ArenaPage
	}
	load, err := appendSpec(openFrame(nil, frameLoad), &spec)
	if err == nil {
		load, err = closeFrame(load, 0)
	}
	if err != nil {
		return err
	}
	h.Plane = ctlPlane
	second, err := closeFrame(appendHello(openFrame(nil, frameHello), h), 0)
	if err == nil {
		err = inc.out.send(append(first, load...))
	}
	if err == nil {
		err = inc.ctlOut.send(second)
	}
	return err
}

func (inc *incarnation) pid() int { return inc.cmd.Process.Pid }

// kill ends the process for a reason that Down shows; c.mu is held.
func (inc *incarnation) kill(reason string) {
	if inc.killed == "" {
		inc.killed = reason
	}
	inc.signalKill()
}

// signalKill ends the process and what it started; c.mu is held. Once dead is
// set the number may belong to others.
func (inc *incarnation) signalKill() {
	if !inc.dead {
		_ = unix.Kill(-inc.pid(), unix.SIGKILL)
	}
}

// close asks the child to leave; c.mu is held.
func (inc *incarnation) close() {
	frame, err := closeFrame(openFrame(nil, frameClose), 0)
	if err == nil {
		err = inc.out.send(frame)
	}
	if err != nil {
		inc.signalKill()
	}
}

// wait returns how the process ended, after it has been reaped. It looks
// first without reaping, so that the process group can be killed while its
// number is surely ours.
func (inc *incarnation) wait() string {
	for unix.Waitid(unix.P_PID, inc.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	inc.c.mu.Lock()
	inc.signalKill()
	inc.dead = true
	inc.c.mu.Unlock()
	_ = inc.cmd.Wait() // the state below says more than its error
	status, _ := inc.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == unix.SIGKILL && inc.wasKilled() == "":
		return "signal 9 (killed), by Linux for want of memory or by hand"
	case status.Signaled():
		return fmt.Sprintf("signal %d (%v)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

func (inc *incarnation) wasKilled() string {
	inc.c.mu.Lock()
	defer inc.c.mu.Unlock()
	return inc.killed
}

// hangUp ends both planes. What the child had written is still read.
func (inc *incarnation) hangUp() {
	inc.greeting.Stop()
	for _, out := range []*outbox{inc.out, inc.ctlOut} {
		out.close()
		_ = out.conn.CloseRead()
		_ = out.conn.CloseWrite()
	}
}

// release gives back what the incarnation holds of the system.
func (inc *incarnation) release() {
	for _, conn := range []*net.UnixConn{inc.step, inc.ctl} {
		if conn != nil {
			conn.Close()
		}
	}
	if inc.linger != nil {
		inc.linger.Stop()
	}
}
