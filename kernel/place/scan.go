package place

import "ieg"

// option is a feasible place of a node: a device, or a group as ^index.
type option struct {
	c     float64 // α·L + β·Q + γ·M + λ·D(sources)
	late  float64 // violation of the SLA if nothing else had to be moved
	place int32
}

// span is a part of a slice.
type span struct{ lo, hi int32 }

// group is a set of devices that are used together, in rising order.
type group struct {
	at       span // in members
	q, price float64
	listed   int32 // 1 + the node that it was offered to last
}

// reason says why a device was left out.
type reason uint8

const (
	isDown reason = iota
	wrongKind
	noPrecision
	noModelPath
	notRequired
	noMemory
	numReasons
)

var reasonNames = [numReasons]string{"down", "wrong kind of device", "precision not supported",
	"no execution path for the model", "not the required device", "memory"}

// leftOut counts the devices that a node can't use.
type leftOut struct {
	n [numReasons]int32
	// near is the device that lacks the least memory.
	near  int32
	lacks int64
}

// on is the standing of a node's model on a device.
func (pl *Planner) on(v int, d int32) hostedOn {
	if m := pl.modelOf[v]; m >= 0 {
		return pl.models[m].on[d]
	}
	return hostedOn{scale: 1, path: true}
}

// seconds is T(v,d): the engine's measured speed, else the semantic model.
func (pl *Planner) seconds(v int, d int32, on *hostedOn, prec *precision) float64 {
	n := &pl.pr.Nodes[v]
	if on.speed != nil {
		if e, ok := on.speed.Speed.Estimate(n.Work, on.speed.Chunk); ok {
			return e.Seconds
		}
	}
	inv := &pl.ix.inv[d]
	return max(n.Demand.FLOPs*prec.inv[d], n.Demand.Bytes*inv.bandwidth, n.Demand.IO*inv.io) * on.scale
}

// needs splits the memory that a node adds to a device.
func needs(n *Node, on *hostedOn) (weights, own int64) {
	return max(n.Weights-on.resident, 0), max(n.Demand.Memory-n.Weights, 0)
}

// runsOn tells whether a kind of device can run a stage: models run anywhere
// that has a path for them, tools, retrieval and control on a host's CPU.
func runsOn(s ieg.Stage, cpu bool) bool {
	switch s.Type() {
	case ieg.ComputeNode, ieg.MemoryNode:
		return true
	}
	return cpu
}

// transfer is the longest D of a node's sources, and their sum.
func (pl *Planner) transfer(v int, place int32) (longest, sum float64) {
	for _, s := range pl.srcs[pl.srcAt[v]:pl.srcAt[v+1]] {
		t := pl.between(s.device, place, s.bytes)
		longest, sum = max(longest, t), sum+t
	}
	return longest, sum
}

// filter tells why a device can't run a node; ok if it can.
func (pl *Planner) filter(v int, d int32, on *hostedOn, prec *precision) (why reason, ok bool) {
	n := &pl.pr.Nodes[v]
	switch {
	case !pl.hot[d].up:
		return isDown, false
	case !runsOn(n.Stage, pl.ix.cpu[d]):
		return wrongKind, false
	case n.Precision != "" && !prec.ok[d]:
		return noPrecision, false
	case !on.path:
		return noModelPath, false
	}
	w, own := needs(n, on)
	if lacks := w + own - pl.hot[d].free; lacks > 0 && w+own > 0 {
		l := &pl.left[v]
		if l.near < 0 || lacks < l.lacks {
			l.near, l.lacks = d, lacks
		}
		return noMemory, false
	}
	return 0, true
}

// scan is the first stage: all feasible places of each node with their score.
// Nodes of one device come first: where they fit best tells which groups are
// worth their while.
func (pl *Planner) scan() error {
	nodes := pl.pr.Nodes
	pl.opts, pl.groups, pl.sorted, pl.members = pl.opts[:0], pl.groups[:0], pl.sorted[:0], pl.members[:0]
	pl.fast = resize(pl.fast, len(nodes))
	pl.left, pl.optAt = resize(pl.left, len(nodes)), resize(pl.optAt, len(nodes))
	pl.scanned = resize(pl.scanned, len(nodes))
	clear(pl.scanned)
	for _, grouped := range [2]bool{false, true} {
		for v := range nodes {
			if nodes[v].Degree > 1 != grouped {
				continue
			}
			if err := pl.scanNode(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (pl *Planner) scanNode(v int) error {
	n := &pl.pr.Nodes[v]
	pl.left[v], pl.fast[v] = leftOut{near: -1}, fast{{seconds: infinite}, {seconds: infinite}}
	prec := pl.pool.precision(n.Precision)
	lo := len(pl.opts)
	if n.Degree > 1 {
		pl.scanGroups(v, prec)
	} else {
		pl.scanDevices(v, prec)
	}
	if lo == len(pl.opts) {
		return pl.noFit(v)
	}
	pl.optAt[v], pl.scanned[v] = span{int32(lo), int32(len(pl.opts))}, true
	return nil
}

func (pl *Planner) scanDevices(v int, prec *precision) {
	n, w := &pl.pr.Nodes[v], &pl.pr.Weights
	sla, sources := n.SLA.Seconds(), pl.srcAt[v+1] > pl.srcAt[v]
	for _, d := range pl.devs {
		if pl.req[v] >= 0 && pl.req[v] != d {
			pl.left[v].n[notRequired]++
			continue
		}
		on := pl.on(v, d)
		if why, ok := pl.filter(v, d, &on, prec); !ok {
			pl.left[v].n[why]++
			continue
		}
		t, q := pl.seconds(v, d, &on, prec), pl.hot[d].queue
		o := option{c: w.Alpha*t + w.Beta*q + w.Gamma*pl.ix.inv[d].price*t, place: d}
		longest := 0.0
		if sources {
			var sum float64
			longest, sum = pl.transfer(v, d)
			o.c += w.Lambda * sum
		}
		if sla > 0 {
			o.late = max(q+longest+t-sla, 0)
		}
		pl.opts = append(pl.opts, o)
		pl.fastest(v, d, q+longest+t)
	}
}

// fast are the two places where a node would end first, whatever they cost.
type fast [2]struct {
	place   int32
	seconds float64
}

func (pl *Planner) fastest(v int, place int32, seconds float64) {
	f := &pl.fast[v]
	if seconds >= f[1].seconds {
		return
	}
	f[1].place, f[1].seconds = place, seconds
	if f[1].seconds < f[0].seconds {
		f[0], f[1] = f[1], f[0]
	}
}
