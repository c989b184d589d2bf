package bench

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// witness makes a plain copy of a block now and then, as urgently as engines
// run. Its longest time is what the host does to any copy.
type witness struct {
	end     chan struct{}
	all     sync.WaitGroup
	longest time.Duration
}

const (
	witnessEach = 50 * time.Millisecond
	witnessNice = -5 // as engines; who may not set it is as urgent as they are
)

func watchCopies() *witness {
	w := &witness{end: make(chan struct{})}
	w.all.Go(w.watch)
	return w
}

// stop ends the watch and tells the longest copy.
func (w *witness) stop() time.Duration {
	close(w.end)
	w.all.Wait()
	return w.longest
}

func (w *witness) watch() {
	runtime.LockOSThread() // the thread ends with this goroutine
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), witnessNice)
	from, to := make([]byte, diskBlock), make([]byte, diskBlock)
	for range 2 { // the first touches are not what is measured
		copy(to, from)
		copy(from, to)
	}
	tick := time.NewTicker(witnessEach)
	defer tick.Stop()
	for {
		select {
		case <-w.end:
			return
		case <-tick.C:
		}
		started := time.Now()
		copy(to, from)
		w.longest = max(w.longest, time.Since(started))
	}
}
