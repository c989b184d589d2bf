package cost

import (
	"cmp"
	"slices"

	"ieg"
)

// Query asks for the time of work on a device (or on one member of a group).
type Query struct {
	Model     *ieg.ModelInfo // nil for tool, retrieval and control nodes
	Device    *ieg.ResourceSpec
	Precision string
	Work      Work
	// Speed is the measured speed of the engine that would run it, zero if
	// there is none; Chunk its tokens per step (0: no chunking).
	Speed Speed
	Chunk int32
}

func (q *Query) key() Key {
	k := Key{Device: deviceType(q.Device), Precision: q.Precision}
	if q.Model != nil {
		k.Model = q.Model.Name
	}
	return k
}

// deviceType is the name under which devices share profiles.
func deviceType(r *ieg.ResourceSpec) string {
	return cmp.Or(r.Model, r.Series, r.Type, r.ID)
}

// Correction is what telemetry learnt about one key and stage: the smoothed
// ratio of actual to uncorrected prediction.
type Correction struct {
	Key   Key
	Stage ieg.Stage
	Ratio float64
	Count int64
	// Error is the smoothed relative error of corrected predictions; Off
	// counts those in a row beyond ReprofileError.
	Error float64
	Off   int
}

// Fitted is the efficiency of one device type.
type Fitted struct {
	Device     string
	Efficiency Efficiency
}

// Predictor answers with the best knowledge there is: the engine's own
// profile, else the table, else the semantic model on fitted capacities; the
// last two corrected by telemetry. The zero value is ready.
type Predictor struct {
	Table       Table
	Fitted      []Fitted     // sorted by Device
	Corrections []Correction // sorted by Key, Stage
}

// Predict is T(v,d) for a query.
func (p *Predictor) Predict(q *Query) Estimate {
	if e, ok := q.Speed.Estimate(q.Work, q.Chunk); ok {
		return e
	}
	e := p.uncorrected(q)
	if c := p.correction(q.key(), q.Work.Stage); c != nil {
		e.Scale = c.Ratio
		e.Seconds *= c.Ratio
	}
	return e
}

func (p *Predictor) uncorrected(q *Query) Estimate {
	if e, ok := p.Table.Estimate(q.key(), q.Work); ok {
		return e
	}
	return CapacityOf(q.Device, q.Precision, p.Efficiency(q.Device)).Time(Demand(q.Model, q.Work))
}

// Efficiency is what was fitted for the device's type, or the default.
func (p *Predictor) Efficiency(r *ieg.ResourceSpec) Efficiency {
	i, found := p.fitted(deviceType(r))
	if !found {
		return DefaultEfficiency
	}
	return p.Fitted[i].Efficiency
}

func (p *Predictor) fitted(device string) (int, bool) {
	return slices.BinarySearchFunc(p.Fitted, device, func(f Fitted, d string) int { return cmp.Compare(f.Device, d) })
}

// FitDevice moves the efficiency of a device type towards an observation of
// work that ran alone on it.
func (p *Predictor) FitDevice(q *Query, seconds float64) {
	i, found := p.fitted(deviceType(q.Device))
	if !found {
		p.Fitted = slices.Insert(p.Fitted, i, Fitted{deviceType(q.Device), DefaultEfficiency})
	}
	peak := CapacityOf(q.Device, q.Precision, Peak)
	p.Fitted[i].Efficiency.Fit(peak, Demand(q.Model, q.Work), seconds, correctionRate)
}

// Verdict is what an observation says about the prediction made for it.
type Verdict struct {
	Predicted float64 // seconds
	Error     float64 // |actual − predicted| / predicted
	// Reprofile: off by more than ReprofileError ReprofileAfter times in a row.
	Reprofile bool
}

// Observe compares a node's actual time with its prediction and corrects the
// next ones.
func (p *Predictor) Observe(q *Query, seconds float64) Verdict {
	plain := *q
	plain.Speed = Speed{}
	base, now := p.uncorrected(&plain).Seconds, p.Predict(&plain).Seconds
	v := Verdict{Predicted: now}
	if base <= 0 || seconds <= 0 {
		return v
	}
	v.Error = max(now-seconds, seconds-now) / now
	c := p.correct(q.key(), q.Work.Stage)
	if c == nil {
		return v
	}
	rate := max(correctionRate, 1/float64(c.Count+1)) // a mean first, then a moving one
	c.Ratio += rate * (seconds/base - c.Ratio)
	c.Ratio = min(max(c.Ratio, correctionMin), correctionMax)
	c.Count++
	c.Error += rate * (v.Error - c.Error)
	if v.Error > ReprofileError {
		c.Off++
	} else {
		c.Off = 0
	}
	v.Reprofile = c.Off >= ReprofileAfter
	return v
}

// Reprofile lists the keys whose predictions have left reality, in order.
func (p *Predictor) Reprofile() []Key {
	var keys []Key
	for i := range p.Corrections {
		if c := &p.Corrections[i]; c.Off >= ReprofileAfter && (len(keys) == 0 || keys[len(keys)-1] != c.Key) {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func (p *Predictor) find(k Key, s ieg.Stage) (int, bool) {
	return slices.BinarySearchFunc(p.Corrections, k, func(c Correction, k Key) int {
		return cmp.Or(c.Key.compare(k), cmp.Compare(c.Stage, s))
	})
}

func (p *Predictor) correction(k Key, s ieg.Stage) *Correction {
	if i, found := p.find(k, s); found {
		return &p.Corrections[i]
	}
	return nil
}

// correct finds or makes a correction; nil when the table of them is full.
func (p *Predictor) correct(k Key, s ieg.Stage) *Correction {
	i, found := p.find(k, s)
	if !found {
		if len(p.Corrections) >= MaxCorrections {
			return nil
		}
		p.Corrections = slices.Insert(p.Corrections, i, Correction{Key: k, Stage: s, Ratio: 1})
	}
	return &p.Corrections[i]
}
