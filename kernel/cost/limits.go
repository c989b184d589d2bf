package cost

// Limits and priors of the package.
const (
	// LongPromptTokens is the context length in tokens above which the
	// attention term counts; below it the term is under 4 % of a 70B's
	// FLOPs and left out, as the reference figures do.
	LongPromptTokens = 4096

	// ReprofileError is the relative error |actual − predicted| / predicted
	// above which a cell must be measured again.
	ReprofileError = 0.20
	// ReprofileAfter is how many observations in a row must be that far off.
	ReprofileAfter = 8

	// MaxCells bounds the look-up table: 4 precisions × 7 batches × 5 lengths
	// of 64 (model, device type) pairs, rounded up.
	MaxCells = 16384
	// MaxCorrections bounds the telemetry corrections kept.
	MaxCorrections = 4096

	// forget is the weight of a step's predecessors: about 200 steps of memory.
	forget = 0.995
	// correctionRate is the weight of the newest ratio actual ÷ predicted.
	correctionRate = 0.1
	// correctionMin and correctionMax bound a correction.
	correctionMin, correctionMax = 0.05, 20.0

	// Priors of a device that states no capacity: one slow core. They are
	// replaced by the first measurement.
	PriorFLOPS     = 20e9  // FLOP/s
	PriorBandwidth = 10e9  // bytes/s
	PriorIO        = 200e6 // bytes/s

	// ReferencePricePerHour turns money into seconds: a device at this price
	// costs one second a second.
	ReferencePricePerHour = 2.0

	// activationBytes is the size of one activation element in a collective.
	activationBytes = 2

	// adaptStep, adaptDecay and adaptMax steer the weights: one step up a
	// window, a slower way back, at most adaptMax times the base.
	adaptStep, adaptDecay, adaptMax = 1.10, 0.98, 4.0
	// penaltyStep and penaltyMax do the same for a device's queue.
	penaltyStep, penaltyMax = 1.25, 8.0
)
