package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/devices"
	"ieg/kernel"
	"ieg/kernel/run"
	"ieg/memory/kv"
	"ieg/memory/pager"
	"ieg/memory/tier"
	arena "ieg/memory/tier/host"
	"ieg/memory/tier/nvme"
)

// tiers are the KV tiers below the devices: the arena and the NVMe tier. A nil
// one has neither.
type tiers struct {
	arena *arena.Arena
	pager *pager.Pager
	loop  atomic.Pointer[run.Loop]
	notes []string
	log   *slog.Logger
}

// openTiers makes the arena and begins to open the NVMe tier, as far as they
// are wanted and can be had: serving goes on without.
func openTiers(e *config.Effective, memory devices.Memory, log *slog.Logger) (*tiers, error) {
	t := &tiers{log: log}
	key, err := readKey(e.KV.KeyFile)
	if err != nil {
		return nil, err
	}
	room := hostBytes(e.KV.Host, memory)
	if room == 0 {
		t.note("KV stays on the devices", "reason", "kv.host is 0, or there is too little memory")
		if e.KV.NVMe > 0 {
			log.Warn("kv.nvme is not used: what goes to the disk goes through host memory; set --kv-host")
		}
		return t, nil
	}
	if memory.Total > 0 && room > memory.Total {
		return nil, badSetting("kv.host", "is %s, and this host has %s of memory; choose less by --kv-host, or 0 for none", size(room), size(memory.Total))
	}
	if set, disk := int64(e.KV.NVMe), diskBytes(e.DataDir); disk > 0 && set > disk {
		return nil, badSetting("kv.nvme", "is %s, and the disk of %s has %s; choose less by --kv-nvme, or 0 for none", size(set), e.DataDir, size(disk))
	}
	t.arena, err = arena.New(arena.Config{Bytes: room, PageBytes: ArenaPage, Lock: e.KV.Lock, Huge: e.KV.HugePages})
	if err != nil {
		return nil, badSetting("kv.host", "%v; choose another size by --kv-host, or 0 for none", err)
	}
	for _, n := range t.arena.Notes() {
		t.note("arena", "note", n)
	}
	if e.KV.NVMe == 0 {
		return t, nil
	}
	dir := filepath.Join(e.DataDir, "kv")
	budget := nvmeBytes(e.KV.NVMe, dir)
	compression, err := pager.ParseCompression(e.KV.NVMeCodec)
	if err != nil {
		return nil, err
	}
	c := pager.Config{
		Open: func() (tier.Store, error) {
			return nvme.Open(nvme.Config{Dir: dir, Size: 2 * budget, Reserve: max(int64(e.KV.Reserve), 0), Key: key, Log: log})
		},
		Arena: t.arena, Size: budget, Compression: compression, WriteRate: int64(e.KV.WriteRate), WriteDaily: int64(e.KV.WriteDaily),
		TTL: time.Duration(e.KV.TTL), HalfLife: kv.HalfLife, Policy: policyOf(e), Log: log,
		Done: func(d ieg.MoveDone) { t.post(kernel.MoveDone{Done: d}) },
		State: func(up bool, why string) {
			if up {
				t.post(kernel.NVMeUp{})
			} else {
				t.post(kernel.NVMeDown{Reason: why})
			}
		},
	}
	t.pager, err = pager.New(c)
	return t, err
}

func (t *tiers) note(what string, args ...any) {
	t.log.Info(what, args...)
	t.notes = append(t.notes, fmt.Sprint(append([]any{what + ":"}, args[1:]...)...))
}

// post hands a fact to the loop once there is one; before, the kernel knows of
// no tier that the fact could be about. The tier's first state is told by plug.
func (t *tiers) post(ev kernel.Event) {
	if l := t.loop.Load(); l != nil {
		l.Post(ev)
	}
}

// plug gives the node what lies below its devices.
func (t *tiers) plug(c *node.Config) {
	if t.arena == nil {
		return
	}
	c.Arena = &node.Arena{File: t.arena.File(), Bytes: t.arena.Bytes(), PageBytes: t.arena.PageBytes()}
	if t.pager == nil {
		return
	}
	c.Mover, c.Find = t.pager, t.find
}

// begin connects the NVMe tier with the loop.
func (t *tiers) begin(l *run.Loop) {
	if t.pager == nil {
		return
	}
	t.loop.Store(l)
	if t.pager.Status().Up {
		l.Post(kernel.NVMeUp{})
	}
}

// find asks the NVMe tier for a prompt.
func (t *tiers) find(info *ieg.EngineInfo, tenant string, prompt []ieg.Token) ieg.Stored {
	root := kv.Root(info.KVName, tenant)
	t.pager.Register(root, pager.Root{KVType: info.KVType, INT8: info.KVINT8})
	return t.pager.Find(root, prompt)
}

func (t *tiers) close() {
	if t.pager == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), CloseWait)
	defer cancel()
	if err := t.pager.Close(ctx); err != nil {
		t.log.Warn("KV in the data folder", "error", err)
	}
}

// hostBytes is the arena's size: as set, or a share of the memory that may be
// taken.
func hostBytes(s config.Size, m devices.Memory) int64 {
	if s != config.AutoSize {
		return int64(s)
	}
	size := min(int64(HostShare*float64(min(m.Available, m.Total))), HostMost)
	if size < config.HostMin {
		return 0
	}
	return size
}

// nvmeBytes is the budget of the NVMe tier in a folder: as set, or a share of
// the disk that is free or the tier's already. A full disk leaves the least
// budget: what is there is read, and the store itself refuses more.
func nvmeBytes(s config.Size, dir string) int64 {
	if s != config.AutoSize {
		return int64(s)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(dir), &st); err != nil {
		return config.NVMeMin
	}
	room := float64(st.Bavail) * float64(st.Bsize)
	files, _ := filepath.Glob(filepath.Join(dir, "extents", "*.kv"))
	for _, f := range files {
		if info, err := os.Lstat(f); err == nil {
			room += float64(info.Size())
		}
	}
	return min(max(int64(NVMeShare*min(room, math.MaxInt64/2)), config.NVMeMin), NVMeMost)
}

// diskBytes is the size of the disk that a folder is or will be on; 0: nobody
// knows.
func diskBytes(dir string) int64 {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &st)
	}
	if err != nil {
		return 0
	}
	return int64(min(float64(st.Blocks)*float64(st.Bsize), math.MaxInt64/2))
}

func policyOf(e *config.Effective) kv.Policy {
	if e.KV.Policy == "lru" {
		return kv.LRU
	}
	return kv.ByValue
}

// badSetting is a setting that doesn't fit this host.
func badSetting(field, format string, args ...any) error {
	return &config.Error{Field: field, Text: fmt.Sprintf(format, args...)}
}

// readKey reads the key of the NVMe tier: 32 bytes, or their 64 digits.
func readKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, badSetting("kv.key_file", "%v; name a file by --kv-key-file that holds 32 bytes, or 64 hexadecimal digits; make one by: openssl rand -hex 32", err)
	}
	if len(b) == 32 {
		return b, nil
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != 32 {
		return nil, badSetting("kv.key_file", "%s holds neither 32 bytes nor 64 hexadecimal digits; make one by: openssl rand -hex 32", file)
	}
	return key, nil
}

// door tells the admin socket what lies below the devices, and if nothing does,
// why.
func (t *tiers) door(e *config.Effective) node.KVConfig {
	c := node.KVConfig{Pager: t.pager}
	switch {
	case t.arena != nil:
		c.HostBytes, c.HostNotes = t.arena.Bytes(), t.arena.Notes()
	case e.KV.Host == 0:
		c.HostOff = "kv.host is 0"
	default:
		c.HostOff = "this host has too little memory for it"
	}
	switch {
	case t.pager != nil:
		c.Folder, c.Encrypted = filepath.Join(e.DataDir, "kv"), e.KV.KeyFile != ""
	case c.HostOff != "":
		c.NVMeOff = "there is no host memory to go through"
	default:
		c.NVMeOff = "kv.nvme is 0"
	}
	return c
}
