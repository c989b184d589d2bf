package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ieg"
)

// KV shows and steers the tiers of KV. What needs the loop waits for it as long
// as ctx allows.
type KV interface {
	KVTiers() KVTiers
	// KVTree lists at most n prefixes that the tiers below the devices hold,
	// the hottest first.
	KVTree(ctx context.Context, n int) ([]KVPrefix, error)
	// PinKV keeps a block, and all before it, where it lies; ErrNotFound.
	PinKV(ctx context.Context, p KVPin) (KVPinned, error)
	UnpinKV(ctx context.Context, p KVPin) (KVPinned, error)
	// DropKV forgets the KV of a tenant, or all.
	DropKV(ctx context.Context, d KVDrop) (KVDropped, error)
	// FlushKV returns once what can be saved is saved and on disk, and tells
	// what is not; ieg.ErrDeadline if that takes too long.
	FlushKV(ctx context.Context, f KVFlush) (KVFlushed, error)
}

// KVTiers is how the tiers of KV are doing.
type KVTiers struct {
	// Engines hold the device tier.
	Engines []ieg.EngineStatus `json:"engines"`
	Host    KVHost             `json:"host"`
	NVMe    KVNVMe             `json:"nvme"`
	// Tokens are prompt tokens by where their KV came from.
	Tokens KVTokens     `json:"prompt_tokens"`
	Kernel ieg.KVStatus `json:"kernel"`
}

// KVTokens are tokens whose KV sequences needed, by where it came from.
type KVTokens struct {
	Device   int64 `json:"device"`
	Host     int64 `json:"host"`
	NVMe     int64 `json:"nvme"`
	Computed int64 `json:"computed"`
}

// CountKV sorts the tokens of a status. Sequences that were resumed count again
// with what they found.
func CountKV(st *ieg.Status) KVTokens {
	h := &st.KV.Counts.Hits
	return KVTokens{Device: h[ieg.TierDevice], Host: h[ieg.TierHost], NVMe: h[ieg.TierNVMe],
		Computed: st.Totals.PromptTokens - st.Totals.CachedTokens}
}

// KVHost is the arena.
type KVHost struct {
	// Off says why there is none.
	Off   string `json:"off,omitempty"`
	Bytes int64  `json:"bytes"`
	// Notes say what was asked for and could not be had.
	Notes []string `json:"notes,omitempty"`
}

// KVNVMe is the tier in the data folder. Counts are since the start; sizes are
// in bytes.
type KVNVMe struct {
	Up bool `json:"up"`
	// State is one of the words below.
	State string `json:"state"`
	// Why says why it is not used, or why not all is stored.
	Why       string `json:"why,omitempty"`
	Folder    string `json:"folder,omitempty"`
	Encrypted bool   `json:"encrypted"`

	Blocks       int   `json:"blocks"`
	Tokens       int64 `json:"tokens"`
	Bytes        int64 `json:"bytes"`
	Size         int64 `json:"size_bytes"` // the budget of Bytes
	Disk         int64 `json:"disk_bytes"` // taken on the disk
	Free         int64 `json:"disk_free_bytes"`
	WrittenToday int64 `json:"written_today_bytes"` // within 24 hours, all overhead included

	Evicted int64 `json:"evicted"` // for want of room
	Refused int64 `json:"refused"` // since a budget is spent or the tier is full
	Corrupt int64 `json:"corrupt"` // wrong in the folder, or lost with its file
	Broken  int64 `json:"broken"`  // wrong in the arena, found before they were stored; part of the kernel's Corrupt

	// Measured lately, in bytes a second; 0: not yet.
	ReadRate  float64 `json:"read_bytes_per_s"`
	WriteRate float64 `json:"write_bytes_per_s"`
	InFlight  int     `json:"moves"`
}

// The states of the tier in the data folder.
const (
	NVMeOff     = "off"     // by the settings, or for want of room: it stays so
	NVMeOpening = "opening" // it is being opened, or read
	NVMeUp      = "up"
	NVMeDown    = "down" // it can't be used; it is tried again, and comes back by itself
)

// KVPrefix is a prefix that texts share, or the end of one.
type KVPrefix struct {
	Hash ieg.BlockHash `json:"hash"`
	// Model is the loaded model whose KV it is; "" where that is not known: for
	// models that aren't loaded, and for a cache_salt that no request had since
	// the start.
	Model string `json:"model,omitempty"`
	// Depth is the number of tokens up to its end. Tokens and Bytes are those
	// of the run of blocks up to it since texts parted last, and of all that
	// continues it; of a part of that, if Partial.
	Depth   int32   `json:"depth_tokens"`
	Tokens  int64   `json:"tokens"`
	Bytes   int64   `json:"bytes"`
	Partial bool    `json:"partial,omitempty"`
	Heat    float64 `json:"heat"` // recent uses
	// Age is the time since it was used last.
	Age    time.Duration `json:"age_ns"`
	Tiers  []string      `json:"tiers"`
	Pinned bool          `json:"pinned"`
}

// KVPin names a block by its hash, or by the first digits of it.
type KVPin struct {
	Hash string `json:"hash"`
	// For is how long it is pinned; 0: until the node ends.
	For time.Duration `json:"for_ns,omitempty"`
}

// KVPinned is what was pinned, or is no longer.
type KVPinned struct {
	Hash ieg.BlockHash `json:"hash"`
	// Tiers are those that hold it.
	Tiers []string `json:"tiers"`
}

// KVDrop asks for KV to be forgotten, in every tier.
type KVDrop struct {
	// Tenant is the cache_salt of requests, "" that of requests without one.
	Tenant *string `json:"tenant,omitempty"`
	All    bool    `json:"all,omitempty"`
}

// KVDropped is what was forgotten below the devices.
type KVDropped struct {
	HostBlocks int   `json:"host_blocks"`
	NVMeBlocks int   `json:"nvme_blocks"`
	NVMeBytes  int64 `json:"nvme_bytes"`
}

// KVFlush asks for what is computed to be saved below the devices.
type KVFlush struct {
	Within time.Duration `json:"within_ns"`
}

// KVFlushed is what a flush did.
type KVFlushed struct {
	Saved  int64         `json:"saved_bytes"`  // to the arena
	Stored int64         `json:"stored_bytes"` // to the data folder
	Took   time.Duration `json:"took_ns"`
	// Left is what host memory has and the data folder lacks. HostFull tells
	// that host memory has no room for all that the devices hold.
	Left      int   `json:"left_blocks"`
	LeftBytes int64 `json:"left_bytes"`
	HostFull  bool  `json:"host_full"`
	// Note says why something is left, or what is amiss.
	Note string `json:"note,omitempty"`
}

// Done tells that all is in the data folder.
func (f *KVFlushed) Done() bool { return f.Left == 0 && !f.HostFull }

// kvRoutes is the part of the surface for KV.
func (s *Server) kvRoutes() []route {
	return []route{
		{"GET /v1/kv", read, func(*http.Request) (any, error) { return s.node.KV.KVTiers(), nil }},
		{"GET /v1/kv/tree", read, s.kvTree},
		{"POST /v1/kv/pin", write, s.kvPin},
		{"POST /v1/kv/unpin", write, s.kvUnpin},
		{"POST /v1/kv/drop", write, s.kvDrop},
		{"POST /v1/kv/flush", write, s.kvFlush},
	}
}

func (s *Server) kvTree(r *http.Request) (any, error) {
	n := KVTreeRows
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > KVTreeRowsMax {
			return nil, fmt.Errorf("%w: n: 1 to %d rows", ErrInvalid, KVTreeRowsMax)
		}
	}
	rows, err := s.node.KV.KVTree(r.Context(), n)
	return list(rows), err
}

func (s *Server) kvPin(r *http.Request) (any, error) {
	p, err := decodePin(r)
	if err != nil {
		return nil, err
	}
	return s.node.KV.PinKV(r.Context(), p)
}

func (s *Server) kvUnpin(r *http.Request) (any, error) {
	p, err := decodePin(r)
	if err != nil {
		return nil, err
	}
	return s.node.KV.UnpinKV(r.Context(), p)
}

func decodePin(r *http.Request) (KVPin, error) {
	p, err := decode[KVPin](r)
	if err == nil {
		err = p.Validate()
	}
	return p, err
}

// Validate checks what can be checked without the node.
func (p KVPin) Validate() error {
	digits := strings.Trim(p.Hash, "0123456789abcdefABCDEF") == ""
	switch {
	case !digits || len(p.Hash) < KVHashDigitsMin || len(p.Hash) > 2*len(ieg.BlockHash{}):
		return fmt.Errorf("%w: a block is named by %d to %d hexadecimal digits, as 'ieg kv tree' shows them", ErrInvalid, KVHashDigitsMin, 2*len(ieg.BlockHash{}))
	case p.For < 0 || p.For > KVPinMax:
		return fmt.Errorf("%w: a pin lasts up to %v", ErrInvalid, KVPinMax)
	}
	return nil
}

func (s *Server) kvDrop(r *http.Request) (any, error) {
	d, err := decode[KVDrop](r)
	switch {
	case err != nil:
		return nil, err
	case d.All == (d.Tenant != nil):
		return nil, fmt.Errorf("%w: name a tenant, or all", ErrInvalid)
	case d.Tenant != nil && len(*d.Tenant) > NameBytesMax:
		return nil, fmt.Errorf("%w: a tenant has up to %d bytes", ErrInvalid, NameBytesMax)
	}
	return s.node.KV.DropKV(r.Context(), d)
}

func (s *Server) kvFlush(r *http.Request) (any, error) {
	f, err := decode[KVFlush](r)
	if err != nil {
		return nil, err
	}
	if f.Within <= 0 || f.Within > KVFlushMax {
		return nil, fmt.Errorf("%w: a flush waits up to %v", ErrInvalid, KVFlushMax)
	}
	return s.node.KV.FlushKV(r.Context(), f)
}

// KV is how the tiers of KV are doing.
func (c *Client) KV(ctx context.Context) (KVTiers, error) { return get[KVTiers](ctx, c, "/v1/kv") }

// KVTree lists at most n prefixes, the hottest first.
func (c *Client) KVTree(ctx context.Context, n int) ([]KVPrefix, error) {
	return get[[]KVPrefix](ctx, c, "/v1/kv/tree?n="+strconv.Itoa(n))
}

// PinKV keeps a block where it lies.
func (c *Client) PinKV(ctx context.Context, p KVPin) (KVPinned, error) {
	return post[KVPinned](ctx, c, "/v1/kv/pin", p)
}

// UnpinKV ends the pins of a block.
func (c *Client) UnpinKV(ctx context.Context, p KVPin) (KVPinned, error) {
	return post[KVPinned](ctx, c, "/v1/kv/unpin", p)
}

// DropKV forgets KV.
func (c *Client) DropKV(ctx context.Context, d KVDrop) (KVDropped, error) {
	return post[KVDropped](ctx, c, "/v1/kv/drop", d)
}

// FlushKV waits until what is computed is saved.
func (c *Client) FlushKV(ctx context.Context, f KVFlush) (KVFlushed, error) {
	return post[KVFlushed](ctx, c, "/v1/kv/flush", f)
}

func post[T any](ctx context.Context, c *Client, path string, in any) (T, error) {
	var v T
	err := c.call(ctx, http.MethodPost, path, in, &v)
	return v, err
}
