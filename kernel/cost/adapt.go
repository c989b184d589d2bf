package cost

import (
	"cmp"
	"slices"
	"time"

	"ieg"
)

// Window is what a goal's requests saw in one period of observation.
type Window struct {
	Attainment float64 // SLO attainment, 0 … 1
	Target     float64 // wanted attainment
	Spend      float64 // money in the period
	Budget     float64 // allowed; 0: none
}

// Queue is the state of one device's queue for adaptation.
type Queue struct {
	Device string
	// Over is the instant since which the queue is above the threshold;
	// ieg.Never while it is not.
	Over    ieg.Time
	Penalty float64 // ≥ 1: factor on β·Q
}

// Adaptation moves the weights with reality: attainment below its target
// raises α, spending above the budget raises γ, a queue that stays above its
// threshold lowers the device's priority. Each returns slowly once its cause
// is gone. Make it with NewAdaptation.
type Adaptation struct {
	Alpha, Gamma [NumGoals]float64 // factors ≥ 1
	Last         [NumGoals]float64 // attainment of the window before
	Queues       []Queue           // sorted by Device
	// Threshold is the queue in seconds that counts as long, Patience how
	// long it must last.
	Threshold float64
	Patience  time.Duration
}

// NewAdaptation starts with all factors at 1.
func NewAdaptation(threshold float64, patience time.Duration) Adaptation {
	a := Adaptation{Threshold: threshold, Patience: patience}
	for g := range a.Alpha {
		a.Alpha[g], a.Gamma[g], a.Last[g] = 1, 1, 1
	}
	return a
}

// Weights are the goal's weights as adapted.
func (a *Adaptation) Weights(g Goal) Weights {
	w := WeightsOf(g)
	w.Alpha *= a.Alpha[g]
	w.Gamma *= a.Gamma[g]
	return w
}

// Observe closes a window of a goal.
func (a *Adaptation) Observe(g Goal, w Window) {
	falling := w.Attainment < w.Target || w.Attainment < a.Last[g]-0.01
	a.Alpha[g] = follow(a.Alpha[g], falling)
	a.Gamma[g] = follow(a.Gamma[g], w.Budget > 0 && w.Spend > w.Budget)
	a.Last[g] = w.Attainment
}

func follow(factor float64, up bool) float64 {
	if up {
		return min(factor*adaptStep, adaptMax)
	}
	return max(factor*adaptDecay, 1)
}

// ObserveQueue reports the seconds of work queued at a device.
func (a *Adaptation) ObserveQueue(now ieg.Time, device string, seconds float64) {
	i, found := a.queue(device)
	if !found {
		a.Queues = slices.Insert(a.Queues, i, Queue{device, ieg.Never, 1})
	}
	q := &a.Queues[i]
	switch {
	case seconds <= a.Threshold:
		q.Over = ieg.Never
		q.Penalty = max(q.Penalty*adaptDecay, 1)
	case q.Over == ieg.Never:
		q.Over = now
	case now.Sub(q.Over) >= a.Patience:
		q.Penalty = min(q.Penalty*penaltyStep, penaltyMax)
		q.Over = now // the next step up needs the same patience
	}
}

// Penalty is the factor on a device's β·Q, ≥ 1.
func (a *Adaptation) Penalty(device string) float64 {
	if i, found := a.queue(device); found {
		return a.Queues[i].Penalty
	}
	return 1
}

func (a *Adaptation) queue(device string) (int, bool) {
	return slices.BinarySearchFunc(a.Queues, device, func(q Queue, d string) int { return cmp.Compare(q.Device, d) })
}
