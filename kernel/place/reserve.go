package place

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/kernel/cost"
)

// ErrReservation: the reservation exists already, or does not.
var ErrReservation = errors.New("reservation")

// Key names a reservation: a node in one attempt of a request.
type Key struct {
	Request ieg.RequestID
	Node    ieg.NodeID
	Attempt int32
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Request, o.Request), cmp.Compare(k.Node, o.Node), cmp.Compare(k.Attempt, o.Attempt))
}

// Reservation is load that was sent to devices and is not yet in their
// reports: of a group all members carry it, or none.
type Reservation struct {
	Key
	Devices []int32
	Work    time.Duration // uncached, on each
	Bytes   int64         // of memory, on each
}

// Assume books a reservation before its devices know of it.
func (p *Pool) Assume(r Reservation) error {
	p.index()
	if len(p.Reservations) >= MaxReservations {
		return fmt.Errorf("%w: %d reservations", ErrPool, MaxReservations)
	}
	for _, d := range r.Devices {
		if int(d) >= len(p.Devices) {
			return fmt.Errorf("%w: number %d", ErrDevice, d)
		}
		if r.Bytes > p.free(d) {
			return fmt.Errorf("%w: %s has %s free, %s were asked for", ieg.ErrOutOfMemory,
				p.Devices[d].Spec.ID, cost.SI(float64(p.free(d)), "B"), cost.SI(float64(r.Bytes), "B"))
		}
	}
	i, found := p.find(r.Key)
	if found {
		return fmt.Errorf("%w of %v node %d attempt %d exists", ErrReservation, r.Request, r.Node, r.Attempt)
	}
	r.Devices = slices.Clone(r.Devices)
	p.Reservations = slices.Insert(p.Reservations, i, r)
	p.ix.book(&r, 1)
	return nil
}

// Confirm ends a reservation because the devices' own reports contain it now.
func (p *Pool) Confirm(k Key) error { return p.release(k) }

// Forget ends a reservation because the work will not come: refused, failed,
// cancelled or placed elsewhere.
func (p *Pool) Forget(k Key) error { return p.release(k) }

func (p *Pool) release(k Key) error {
	p.index()
	i, found := p.find(k)
	if !found {
		return fmt.Errorf("%w of %v node %d attempt %d does not exist", ErrReservation, k.Request, k.Node, k.Attempt)
	}
	p.ix.book(&p.Reservations[i], -1)
	p.Reservations = slices.Delete(p.Reservations, i, i+1)
	return nil
}

// ForgetRequest ends all reservations of a request and returns their number.
func (p *Pool) ForgetRequest(id ieg.RequestID) int {
	p.index()
	lo, _ := p.find(Key{Request: id, Node: -1 << 31, Attempt: -1 << 31})
	hi := lo
	for hi < len(p.Reservations) && p.Reservations[hi].Request == id {
		p.ix.book(&p.Reservations[hi], -1)
		hi++
	}
	p.Reservations = slices.Delete(p.Reservations, lo, hi)
	return hi - lo
}

func (p *Pool) find(k Key) (int, bool) {
	return slices.BinarySearchFunc(p.Reservations, k, func(r Reservation, k Key) int { return r.Key.compare(k) })
}

// book adds (sign 1) or takes off (−1) a reservation.
func (ix *index) book(r *Reservation, sign int64) {
	for _, d := range r.Devices {
		ix.assumed[d] += time.Duration(sign) * r.Work
		ix.reserved[d] += sign * r.Bytes
	}
}
