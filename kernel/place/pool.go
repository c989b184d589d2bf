package place

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ieg"
	"ieg/kernel/cost"
)

// Errors of a pool.
var (
	// ErrDevice: the pool has no such device.
	ErrDevice = errors.New("no such device in the pool")
	// ErrPool: the pool's books are full.
	ErrPool = errors.New("pool is full")
)

// Device is one device as the planner sees it.
type Device struct {
	Spec ieg.ResourceSpec
	// Free bytes of memory; the pool's own reservations are still to be
	// taken off.
	Free int64
	// Load is the work ahead of a new node, in seconds of uncached work, as
	// the device's host last reported it.
	Load float64
	// Penalty ≥ 1 multiplies Load; 0 counts as 1.
	Penalty float64
	Down    bool
	// Efficiency of the data sheet; zero: cost.DefaultEfficiency.
	Efficiency cost.Efficiency
	// Hosted are the models that the device has an execution path for. With
	// AnyModel it takes every model whose precision it supports.
	Hosted   []Hosted
	AnyModel bool
}

// Hosted is a model that can run on a device.
type Hosted struct {
	Model    string
	Resident int64 // bytes of its weights that are in the device's memory
	// Speed is the measured speed of its engine, zero if unknown; Chunk the
	// engine's prefill tokens a step.
	Speed cost.Speed
	Chunk int32
	// Scale is the telemetry correction of the semantic model; 0 counts as 1.
	Scale float64
}

// Ladder are the links between devices by their distance.
type Ladder struct {
	Domain, Host, Rack, Racks, Sites ieg.Link
}

// PeerLink is a measured link from one device to another.
type PeerLink struct {
	To int32
	ieg.Link
}

// Pool is what requests are placed on. Change it by its methods only.
type Pool struct {
	Devices []Device
	// Links are the rows of the measured matrix, each sorted by To; what was
	// not measured follows the Ladder.
	Links        [][]PeerLink
	Ladder       Ladder
	Reservations []Reservation // sorted by key

	ix index // derived; made again when it is missing
}

// NewPool makes a pool of devices on the default ladder.
func NewPool(devices []Device) (*Pool, error) {
	if len(devices) > MaxDevices {
		return nil, fmt.Errorf("%w: %d devices of %d", ErrPool, len(devices), MaxDevices)
	}
	p := &Pool{Devices: devices, Links: make([][]PeerLink, len(devices)), Ladder: DefaultLadder}
	for i := range devices {
		if j, found := p.Index(devices[i].Spec.ID); !found || j != i {
			return nil, fmt.Errorf("device %d: id %q is empty or used twice", i, devices[i].Spec.ID)
		}
	}
	return p, nil
}

// Index finds a device by id.
func (p *Pool) Index(id string) (int, bool) {
	i, found := p.index().byID[id]
	return int(i), found && id != ""
}

// Set adds a device, or replaces the one with the same id. Reservations stay.
func (p *Pool) Set(d Device) error {
	if i, found := p.Index(d.Spec.ID); found {
		p.Devices[i] = d
	} else if len(p.Devices) >= MaxDevices {
		return fmt.Errorf("%w: %d devices", ErrPool, MaxDevices)
	} else {
		p.Devices, p.Links = append(p.Devices, d), append(p.Links, nil)
	}
	p.ix = index{}
	return nil
}

// Report updates what changes all the time: load in seconds and free bytes.
func (p *Pool) Report(i int, load float64, free int64) {
	p.Devices[i].Load, p.Devices[i].Free = load, free
}

// SetDown takes a device out of, or back into, the pool.
func (p *Pool) SetDown(i int, down bool) { p.Devices[i].Down = down }

// SetHosted replaces what is known of a model on a device.
func (p *Pool) SetHosted(i int, h Hosted) {
	d := &p.Devices[i]
	for j := range d.Hosted {
		if d.Hosted[j].Model == h.Model {
			d.Hosted[j] = h
			return
		}
	}
	d.Hosted = append(d.Hosted, h)
	p.ix = index{}
}

// DropHosted forgets a model on a device.
func (p *Pool) DropHosted(i int, model string) {
	d := &p.Devices[i]
	before := len(d.Hosted)
	d.Hosted = slices.DeleteFunc(d.Hosted, func(h Hosted) bool { return h.Model == model })
	if len(d.Hosted) < before {
		p.ix = index{}
	}
}

// SetLink records a measured link of one direction.
func (p *Pool) SetLink(from, to int, l ieg.Link) {
	row := p.Links[from]
	j, found := slices.BinarySearchFunc(row, int32(to), byTo)
	if found {
		row[j].Link = l
		return
	}
	p.Links[from] = slices.Insert(row, j, PeerLink{int32(to), l})
}

func byTo(l PeerLink, to int32) int { return cmp.Compare(l.To, to) }

// Link is the measured link between two devices, or the ladder's.
func (p *Pool) Link(from, to int) ieg.Link {
	if j, found := slices.BinarySearchFunc(p.Links[from], int32(to), byTo); found {
		return p.Links[from][j].Link
	}
	return *p.rung(int32(from), int32(to))
}

// rung is the ladder's link; of a device with itself it is nil.
func (p *Pool) rung(from, to int32) *ieg.Link {
	a, b := &p.ix.spots[from], &p.ix.spots[to]
	switch {
	case a.domain != 0 && a.domain == b.domain:
		return &p.Ladder.Domain
	case a.host == b.host:
		return &p.Ladder.Host
	case a.site != b.site:
		return &p.Ladder.Sites
	case a.rack == b.rack:
		return &p.Ladder.Rack
	}
	return &p.Ladder.Racks
}

// move is D: the seconds to bring bytes from one device to another.
func (p *Pool) move(from, to int32, bytes float64) float64 {
	if from == to || bytes == 0 {
		return 0
	}
	l := p.rung(from, to)
	if row := p.Links[from]; len(row) > 0 {
		if j, found := slices.BinarySearchFunc(row, to, byTo); found {
			l = &row[j].Link
		}
	}
	return bytes/l.Bandwidth + float64(l.Latency)/1e9
}

// Rung names the distance of two devices on the ladder.
func (p *Pool) Rung(from, to int) string {
	p.index()
	if from == to {
		return "same device"
	}
	switch p.rung(int32(from), int32(to)) {
	case &p.Ladder.Domain:
		return "same NVLink domain"
	case &p.Ladder.Host:
		return "same host"
	case &p.Ladder.Rack:
		return "same rack"
	case &p.Ladder.Racks:
		return "across racks"
	}
	return "across sites"
}

// index is derived from the devices.
type index struct {
	byID  map[string]int32
	spots []spot
	sites []string
	inv   []inverse
	cpu   []bool
	// models maps a name to its row of hosted: per device the place in
	// Device.Hosted, or noPath or anyPath.
	models map[string]int32
	hosted [][]int16
	// precisions maps a name to what devices make of it.
	precisions map[string]*precision
	// assumed work is kept in whole nanoseconds: sums are exact, so that
	// books made anew from the reservations equal the running ones.
	assumed  []time.Duration
	reserved []int64 // bytes
	// bySite lists the devices of each site.
	bySite [][]int32
}

const (
	noPath  = int16(-1)
	anyPath = int16(-2)
)

// spot is where a device is, as small numbers; domain 0 is none.
type spot struct{ domain, host, rack, site int32 }

// inverse are seconds per byte, and price in reference seconds per second.
type inverse struct{ bandwidth, io, price float64 }

// precision holds per device whether it is supported and seconds per FLOP.
type precision struct {
	ok  []bool
	inv []float64
}

func (p *Pool) index() *index {
	if p.ix.byID == nil {
		p.ix = p.derive()
	}
	return &p.ix
}

func (p *Pool) derive() index {
	n := len(p.Devices)
	ix := index{
		byID: make(map[string]int32, n), spots: make([]spot, n), inv: make([]inverse, n), cpu: make([]bool, n),
		models: map[string]int32{}, precisions: map[string]*precision{},
		assumed: make([]time.Duration, n), reserved: make([]int64, n),
	}
	hosts, domains, racks, sites := names{}, names{"": 0}, names{}, names{}
	for i := range p.Devices {
		d := &p.Devices[i]
		t := &d.Spec.Topology
		ix.byID[d.Spec.ID] = int32(i)
		host := cmp.Or(t.Host, d.Spec.ID)
		ix.spots[i] = spot{
			domain: domains.id(t.NVLinkDomain), host: hosts.id(host),
			rack: racks.id(t.Site + "/" + t.Rack), site: sites.id(t.Site),
		}
		if int(ix.spots[i].site) == len(ix.sites) {
			ix.sites, ix.bySite = append(ix.sites, t.Site), append(ix.bySite, nil)
		}
		ix.bySite[ix.spots[i].site] = append(ix.bySite[ix.spots[i].site], int32(i))
		c := cost.CapacityOf(&d.Spec, "fp16", d.efficiency())
		ix.inv[i] = inverse{1 / c.Bandwidth, 1 / c.IO, d.Spec.Price / cost.ReferencePricePerHour}
		ix.cpu[i] = strings.EqualFold(d.Spec.Type, "cpu")
		for _, h := range d.Hosted {
			if _, known := ix.models[h.Model]; !known {
				ix.models[h.Model] = int32(len(ix.models))
			}
		}
	}
	ix.hosted = make([][]int16, len(ix.models))
	for m := range ix.hosted {
		ix.hosted[m] = make([]int16, n)
	}
	for i := range p.Devices {
		p.deriveHosted(&ix, i)
	}
	for i := range p.Reservations {
		ix.book(&p.Reservations[i], 1)
	}
	return ix
}

func (p *Pool) deriveHosted(ix *index, i int) {
	path := noPath
	if p.Devices[i].AnyModel {
		path = anyPath
	}
	for m := range ix.hosted {
		ix.hosted[m][i] = path
	}
	for j, h := range p.Devices[i].Hosted {
		ix.hosted[ix.models[h.Model]][i] = int16(j)
	}
}

// names numbers strings in order of appearance.
type names map[string]int32

func (n names) id(s string) int32 {
	id, known := n[s]
	if !known {
		id = int32(len(n))
		n[s] = id
	}
	return id
}

func (d *Device) efficiency() cost.Efficiency {
	if d.Efficiency == (cost.Efficiency{}) {
		return cost.DefaultEfficiency
	}
	return d.Efficiency
}

// precision returns what devices make of a precision, worked out once.
func (p *Pool) precision(name string) *precision {
	if have, known := p.ix.precisions[name]; known {
		return have
	}
	pr := &precision{ok: make([]bool, len(p.Devices)), inv: make([]float64, len(p.Devices))}
	for i := range p.Devices {
		d := &p.Devices[i]
		pr.ok[i] = cost.Supports(&d.Spec, name)
		pr.inv[i] = 1 / cost.CapacityOf(&d.Spec, name, d.efficiency()).Compute
	}
	p.ix.precisions[name] = pr
	return pr
}

// queue is Q: seconds of uncached work ahead, assumed work included.
func (p *Pool) queue(i int32) float64 {
	d := &p.Devices[i]
	return (d.Load + p.ix.assumed[i].Seconds()) * max(d.Penalty, 1)
}

// free bytes after reservations.
func (p *Pool) free(i int32) int64 { return p.Devices[i].Free - p.ix.reserved[i] }

// Queue is the work ahead on a device with its reservations.
func (p *Pool) Queue(i int) time.Duration {
	p.index()
	return time.Duration(p.queue(int32(i)) * 1e9)
}

// FreeBytes is the memory left on a device after its reservations.
func (p *Pool) FreeBytes(i int) int64 {
	p.index()
	return p.free(int32(i))
}
