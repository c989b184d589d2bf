package cost

import (
	"time"

	"ieg"
)

// Weights turn the seconds of a decision into one number:
// c = Alpha·L + Beta·Q + Gamma·M, and Lambda·D per edge.
type Weights struct {
	Alpha  float64 // L: expected time of the node
	Beta   float64 // Q: seconds of uncached work ahead of it
	Gamma  float64 // M: price, as seconds at the reference price
	Lambda float64 // D: seconds of moving δ along an edge
}

// Goal is what a class of requests wants of its placement.
type Goal uint8

// The goals, each with its highest weight.
const (
	Chat    Goal = iota // latency of the node: α
	Agent               // end to end and price: α = γ
	Batch               // throughput, > 1000 tokens/s: β
	Offline             // price: γ, spare and cheap devices
	NumGoals
)

var goalNames = [...]string{"chat", "agent", "batch", "offline"}

// String is the goal's name.
func (g Goal) String() string { return goalNames[g] }

var goalWeights = [NumGoals]Weights{
	Chat:    {Alpha: 1.0, Beta: 0.5, Gamma: 0.1, Lambda: 1.0},
	Agent:   {Alpha: 0.75, Beta: 0.5, Gamma: 0.75, Lambda: 0.75},
	Batch:   {Alpha: 0.5, Beta: 1.0, Gamma: 0.25, Lambda: 0.5},
	Offline: {Alpha: 0.25, Beta: 0.25, Gamma: 1.0, Lambda: 0.25},
}

// WeightsOf are a goal's weights before adaptation.
func WeightsOf(g Goal) Weights { return goalWeights[g] }

// GoalOf maps a class to its goal: P0 chat, P1 agent, P2 batch.
func GoalOf(c ieg.Class) Goal { return [...]Goal{Chat, Agent, Batch}[c] }

// SLO holds the bounds of a class; zero is none.
type SLO struct {
	TTFT, ITL, E2E time.Duration
	TPS            float64 // tokens/s
}

var classSLO = [ieg.NumClasses]SLO{
	ieg.P0: {TTFT: 200 * time.Millisecond, ITL: 20 * time.Millisecond},
	ieg.P1: {E2E: 5 * time.Second},
	ieg.P2: {TPS: 1000},
}

// SLOOf are the targets of a class.
func SLOOf(c ieg.Class) SLO { return classSLO[c] }

// Target is the latency that a node of the stage should keep.
func Target(s ieg.Stage) time.Duration {
	switch s.Type() {
	case ieg.ComputeNode:
		if s == ieg.StagePrefill {
			return 200 * time.Millisecond
		}
	case ieg.MemoryNode:
		return 10 * time.Millisecond
	case ieg.IONode:
		return 100 * time.Millisecond
	case ieg.ControlNode:
		return time.Millisecond
	}
	return 0
}

// Price is M: what seconds of work cost at pricePerHour, in seconds at the
// reference price.
func Price(pricePerHour, seconds float64) float64 {
	return pricePerHour / ReferencePricePerHour * seconds
}

// Node is c = α·L + β·Q + γ·M.
func (w Weights) Node(latency, queue, price float64) float64 {
	return w.Alpha*latency + w.Beta*queue + w.Gamma*price
}
