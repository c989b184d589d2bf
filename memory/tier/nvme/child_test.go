package nvme

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The test binary is also the processes that die, hold the lock or fill a disk.
const (
	childEnv = "IEG_NVME_CHILD"
	dirEnv   = "IEG_NVME_DIR"
	fromEnv  = "IEG_NVME_FROM"
)

var children = map[string]func(dir string) error{
	"crash": crashChild, "hold": holdChild, "tmpfs": tmpfsChild, "limit": limitChild, "fault": faultChild,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Getenv(dirEnv)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is the test binary as the process of that name.
func child(t *testing.T, name, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+name, dirEnv+"="+dir)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// holdChild keeps the store open until its input ends.
func holdChild(dir string) error {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println("open")
	bufio.NewReader(os.Stdin).ReadByte()
	return s.Close()
}
