package nvme

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"

	"ieg/memory/tier"
)

// Store is the tier.Store of a folder. Its methods may be called from several
// goroutines.
type Store struct {
	cfg    Config
	dir    *folder
	index  *index
	sealer *sealer // nil: no encryption

	life   life
	broken atomic.Pointer[error] // why nothing works any more

	mu     sync.Mutex
	files  map[uint64]*extent
	head   *extent // nil until something is written
	next   uint64  // id of the next file
	buffer []byte  // of one sealed block, and of copies

	blocks, live, taking, wrote, ballast atomic.Int64

	gone atomic.Int64 // blocks whose bytes were lost

	tally tally

	pressed atomic.Bool // reclaiming is in a hurry
	astray  atomic.Bool // a file vanished: others may have
	kick    chan struct{}
	stop    context.CancelFunc
	done    sync.WaitGroup
	reads   chan []byte // buffers of sealed reads

	noDirect atomic.Bool // files can't be read past the page cache
	now      func() time.Time
}

var errClosed = errors.New("the store is closed")

// Open opens the store in a folder. It returns tier.ErrLocked if another store
// has it, and tier.ErrUnusable with the reason if the folder can't be used,
// which includes another key than the one it was written with.
func Open(cfg Config) (*Store, error) {
	s, err := open(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() { s.reclaimer(ctx) })
	s.wake()
	return s, nil
}

// open is Open without the reclaimer.
func open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("the NVMe tier: %w", err)
	}
	s := &Store{
		cfg: cfg, files: map[uint64]*extent{}, next: 1, now: time.Now,
		stop: func() {}, kick: make(chan struct{}, 1), reads: make(chan []byte, sealedReads),
	}
	for range sealedReads {
		s.reads <- nil
	}
	var err error
	if s.dir, err = openFolder(cfg.Dir, cfg.Log); err == nil {
		if err = s.start(); err != nil {
			err = errors.Join(err, s.dir.close())
		}
	}
	if errors.Is(err, tier.ErrLocked) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", tier.ErrUnusable, cfg.Dir, err)
	}
	return s, nil
}

// start opens what is in the locked folder.
func (s *Store) start() error {
	size, free, err := s.dir.disk()
	if err != nil {
		return err
	}
	if s.cfg.Reserve == 0 {
		s.cfg.Reserve = defaultReserve(size)
	}
	if free < deleteRoom {
		if err := s.dropBallast(); err != nil {
			return err
		}
		if _, free, err = s.dir.disk(); err != nil {
			return err
		}
	}
	if free < deleteRoom {
		return fmt.Errorf("%w: %s of the disk are free, to open it takes %s", tier.ErrFull, human(free), human(deleteRoom))
	}
	key, sealer, err := keys(s.cfg.Key)
	if err != nil {
		return err
	}
	s.sealer = sealer
	if err := s.openIndex(key); err != nil {
		return err
	}
	if s.tally.day, err = s.index.day(); err != nil {
		return errors.Join(err, s.index.close())
	}
	err = s.recover()
	if errors.Is(err, errEncoding) {
		if err = errors.Join(s.closeHead(), s.index.close()); err == nil {
			err = s.beginAnew(key, errEncoding)
		}
		return err
	}
	if err != nil {
		return errors.Join(err, s.closeHead(), s.index.close())
	}
	return nil
}

// openIndex opens the index, and begins a new one if it is damaged.
func (s *Store) openIndex(key []byte) error {
	tooMany, err := s.dir.attempt()
	if err != nil {
		return err
	}
	if tooMany {
		return s.beginAnew(key, errDeadly)
	}
	s.index, err = openIndex(s.dir.path("index"), key, s.cfg.Log)
	if errors.Is(err, badger.ErrEncryptionKeyMismatch) {
		return errors.Join(errors.New("the folder was written with another key, or without one"), s.dir.attempted())
	}
	var errno syscall.Errno
	if err == nil || errors.As(err, &errno) {
		return errors.Join(err, s.dir.attempted())
	}
	return s.beginAnew(key, err)
}

// errDeadly: opening the index ended the process, several times.
var errDeadly = errors.New("opening the index ended the process")

// beginAnew sets everything aside and opens an empty index.
func (s *Store) beginAnew(key []byte, why error) error {
	s.cfg.Log.Error("the index of the NVMe tier is damaged; beginning anew", "dir", s.cfg.Dir, "err", why)
	if _, err := s.dir.setAside("index", "extents"); err != nil {
		return err
	}
	if err := s.dir.makeFolders(); err != nil {
		return err
	}
	var err error
	if s.index, err = openIndex(s.dir.path("index"), key, s.cfg.Log); err != nil {
		return err
	}
	return s.dir.attempted()
}

func (s *Store) closeHead() error {
	if s.head == nil {
		return nil
	}
	return s.head.close()
}

// Close ends the store and gives the folder free. Calls in flight end first.
func (s *Store) Close() error {
	s.stop()
	s.done.Wait()
	if !s.life.end() {
		return nil
	}
	return errors.Join(s.closeHead(), s.index.close(), s.dir.close())
}

// life counts the calls in flight, which may begin others.
type life struct {
	mu     sync.Mutex
	ended  bool
	flight sync.WaitGroup
}

func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.flight.Add(1)
	return true
}

func (l *life) leave() { l.flight.Done() }

// end refuses further calls and waits for those in flight; false: it was done.
func (l *life) end() bool {
	l.mu.Lock()
	was := l.ended
	l.ended = true
	l.mu.Unlock()
	l.flight.Wait()
	return !was
}

// enterCall begins a call; without an error, the caller leaves life.
func (s *Store) enterCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.life.enter() {
		return fmt.Errorf("%w: %w", tier.ErrUnusable, errClosed)
	}
	err := s.usable()
	if err != nil {
		s.life.leave()
	}
	return err
}

func (s *Store) usable() error {
	if err := s.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// fail is the end of the store: nobody knows any more what is on the disk.
func (s *Store) fail(err error) error {
	if errors.Is(err, tier.ErrUnusable) {
		return err
	}
	err = fmt.Errorf("%w: %s: %w", tier.ErrUnusable, s.cfg.Dir, err)
	s.broken.CompareAndSwap(nil, &err)
	return err
}

// taken is what blocks take of the disk, with what the index needs for them.
func (s *Store) taken() int64 { return s.taking.Load() + s.index.disk() }

// Usage is how full the store is. Written counts what the index of any other
// store of this process writes into tables, too.
func (s *Store) Usage() tier.Usage {
	u := tier.Usage{Blocks: s.blocks.Load(), Live: s.live.Load(), Disk: s.taking.Load(), Written: s.wrote.Load(), Lost: s.gone.Load()}
	u.Day = s.tally.upTo(u.Written, s.now())
	if !s.life.enter() {
		return u
	}
	defer s.life.leave()
	u.Disk = s.taken() + s.ballast.Load()
	u.Written += s.index.written()
	u.Day = s.tally.upTo(u.Written, s.now())
	if _, free, err := s.dir.disk(); err == nil {
		u.Free = free
	}
	return u
}
