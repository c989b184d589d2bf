package graph

import (
	"errors"
	"fmt"
	"math"

	"ieg"
)

// ErrArrow: the transition is none of the table, or its guard does not hold.
var ErrArrow = errors.New("no such transition")

// Guard is the reason of a transition; its name is what explain and the
// journal show.
type Guard uint8

// The guards.
const (
	NoGuard Guard = iota
	PredecessorsCompleted
	DeviceAssigned
	DeviceReady
	Finished
	WaitingForResource
	ResourceAvailable
	PreemptionTriggered
	KVSaved
	KVDropped
	ExecutionError
	BlockedTimeout
	RetryLeft
	RetriesSpent
	NotRetryable
	Refused
	DeviceLost
	Replanned
	OutputLost
	Cancelled
	LimitReached
	BranchNotTaken
	PredecessorFailed
	numGuards
)

var guardNames = [numGuards]string{
	"",
	"all_predecessors_completed",
	"scheduler_assigned_device",
	"device_ready_to_execute",
	"execution_finished_success",
	"waiting_for_resource",
	"resource_available",
	"preemption_triggered",
	"preemption_complete_kv_saved",
	"preemption_complete_kv_dropped", // preempted by recompute
	"execution_error",
	"blocked_timeout",
	"retry_count < max_retries",
	"retry_count >= max_retries",
	"not_retryable",
	"refused",
	"device_lost",
	"replanned",
	"output_lost",
	"cancelled",
	"limit_reached",
	"branch_not_taken",
	"predecessor_failed",
}

// String is the guard's name.
func (g Guard) String() string { return guardNames[g] }

// MarshalText writes the name.
func (g Guard) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads the name.
func (g *Guard) UnmarshalText(b []byte) error {
	for i, name := range guardNames {
		if name == string(b) {
			*g = Guard(i)
			return nil
		}
	}
	return fmt.Errorf("%w: guard %q is not known", ErrArrow, b)
}

// Arrow is one allowed transition with the guards that may lead along it.
type Arrow struct {
	From, To ieg.NodeState
	Guards   []Guard
}

// arrows is the whole state machine.
var arrows = []Arrow{
	{ieg.NodeInit, ieg.NodeReady, []Guard{PredecessorsCompleted}},
	{ieg.NodeReady, ieg.NodeScheduled, []Guard{DeviceAssigned}},
	{ieg.NodeScheduled, ieg.NodeRunning, []Guard{DeviceReady}},
	{ieg.NodeRunning, ieg.NodeCompleted, []Guard{Finished}},
	{ieg.NodeRunning, ieg.NodeBlocked, []Guard{WaitingForResource}},
	{ieg.NodeBlocked, ieg.NodeRunning, []Guard{ResourceAvailable}},
	{ieg.NodeRunning, ieg.NodePreempted, []Guard{PreemptionTriggered}},
	{ieg.NodePreempted, ieg.NodeReady, []Guard{KVSaved, KVDropped}},
	{ieg.NodeRunning, ieg.NodeFailed, []Guard{ExecutionError}},
	{ieg.NodeFailed, ieg.NodeReady, []Guard{RetryLeft}},
	{ieg.NodeFailed, ieg.NodeTerminal, []Guard{RetriesSpent, NotRetryable}},
	// Added to the original: refusal, loss and re-planning of a node that has
	// not started, faults while KV is in motion, re-execution, cancellation.
	{ieg.NodeScheduled, ieg.NodeReady, []Guard{Refused, DeviceLost, Replanned}},
	{ieg.NodeScheduled, ieg.NodeFailed, []Guard{ExecutionError}},
	{ieg.NodeBlocked, ieg.NodeFailed, []Guard{BlockedTimeout, ExecutionError}},
	{ieg.NodeBlocked, ieg.NodePreempted, []Guard{PreemptionTriggered}},
	{ieg.NodeCompleted, ieg.NodeReady, []Guard{OutputLost}},
	{ieg.NodeInit, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, BranchNotTaken, PredecessorFailed}},
	{ieg.NodeReady, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, BranchNotTaken, PredecessorFailed}},
	{ieg.NodeScheduled, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, PredecessorFailed}},
	{ieg.NodeRunning, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, PredecessorFailed}},
	{ieg.NodeBlocked, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, PredecessorFailed}},
	{ieg.NodePreempted, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, PredecessorFailed}},
	{ieg.NodeFailed, ieg.NodeCancelled, []Guard{Cancelled, LimitReached, PredecessorFailed}},
}

// Arrows returns the table, which callers must not change.
func Arrows() []Arrow { return arrows }

const numStates = int(ieg.NodeCancelled) + 1

// allowed[from][to] is the set of guards as bits, made from the table.
var allowed = func() (set [numStates][numStates]uint32) {
	for _, a := range arrows {
		for _, g := range a.Guards {
			set[a.From][a.To] |= 1 << g
		}
	}
	return set
}()

// Allowed tells whether the table has the arrow with the guard.
func Allowed(from, to ieg.NodeState, guard Guard) bool {
	return int(from) < numStates && int(to) < numStates && guard < numGuards && allowed[from][to]&(1<<guard) != 0
}

// Transition moves a node along an arrow of the table at time now. An arrow
// that is none, or whose guard does not hold, is a bug and panics.
func (g *Graph) Transition(id ieg.NodeID, to ieg.NodeState, guard Guard, now ieg.Time) {
	if err := g.Try(id, to, guard, now); err != nil {
		panic("graph: " + err.Error())
	}
}

// Try is Transition for moves that follow from input: it returns ErrArrow and
// changes nothing instead of panicking.
func (g *Graph) Try(id ieg.NodeID, to ieg.NodeState, guard Guard, now ieg.Time) error {
	n := g.Node(id)
	if n == nil {
		return fmt.Errorf("%w: %v has no node %d", ErrArrow, g.Request, id)
	}
	if !Allowed(n.State, to, guard) {
		return fmt.Errorf("%w: node %d (%s) of %v from %v to %v by %q", ErrArrow, id, n.Label(), g.Request, n.State, to, guard)
	}
	if why := g.holds(n, guard, now); why != "" {
		return fmt.Errorf("%w: node %d (%s) of %v from %v to %v: guard %q does not hold: %s",
			ErrArrow, id, n.Label(), g.Request, n.State, to, guard, why)
	}
	g.move(n, to, guard, now)
	return nil
}

// holds checks guards that speak of the graph itself; "" if they hold.
func (g *Graph) holds(n *Node, guard Guard, now ieg.Time) string {
	switch guard {
	case PredecessorsCompleted:
		if g.satisfied(n) != inputsDone {
			return "an input is not there"
		}
	case RetryLeft:
		if n.Retries >= g.Retries {
			return fmt.Sprintf("%d retries of %d", n.Retries, g.Retries)
		}
	case RetriesSpent:
		if n.Retries < g.Retries {
			return fmt.Sprintf("%d retries of %d", n.Retries, g.Retries)
		}
	case BlockedTimeout:
		if now.Sub(n.Since) < g.Blocked {
			return fmt.Sprintf("blocked for %v of %v", now.Sub(n.Since), g.Blocked)
		}
	case OutputLost:
		if n.Epoch == math.MaxUint8 {
			return "epochs are spent"
		}
	}
	return ""
}

// move changes the state, the counters that belong to the arrow, and the
// journal.
func (g *Graph) move(n *Node, to ieg.NodeState, guard Guard, now ieg.Time) {
	from := n.State
	switch guard {
	case RetryLeft:
		n.Retries++
	case OutputLost:
		n.Epoch++
		n.End = 0
	case Refused, DeviceLost, Replanned:
		n.Decision = nil
	}
	if to == ieg.NodeRunning {
		if !n.Ran {
			n.Ran, n.Start = true, now
		}
		n.Note = ""
	}
	if to.Final() {
		n.End = now
	}
	n.State, n.Guard, n.Since = to, guard, now
	g.note(Change{At: now, Node: n.ID, From: from, To: to, Guard: guard, Epoch: n.Epoch})
}

func (g *Graph) note(c Change) {
	if len(g.Journal) >= JournalChanges {
		copy(g.Journal, g.Journal[1:])
		g.Journal[len(g.Journal)-1] = c
		g.Dropped++
		return
	}
	g.Journal = append(g.Journal, c)
}
