package meter

import "time"

// The limits and constants of the package.
const (
	// MaxEngines bounds the series that are kept: a new engine takes the place
	// of the one that was unloaded first; if none was, it is not metered.
	MaxEngines = 64
	// BlockTokens is the size of a KV block in exported metrics. The ledger
	// counts single tokens; scrapers of vLLM's names expect blocks.
	BlockTokens = 16
	// utilWeight is the weight of a step in the moving averages of MFU and
	// MBU: about the last 50 steps.
	utilWeight = 0.02
)

// Bounds of the histograms, those of vLLM, so that its dashboards fit.
var (
	// TTFTBounds in seconds.
	TTFTBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	// TokenBounds in seconds: ITL and TPOT.
	TokenBounds = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	// RequestBounds in seconds: times of whole requests.
	RequestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	// StepBounds in tokens.
	StepBounds = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	// CountBounds in tokens: prompts and outputs.
	CountBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000}
	// ChoiceBounds is for n.
	ChoiceBounds = []float64{1, 2, 5, 10, 20}
)

// The bounds of the classes (specification, section 2).
const (
	p0TTFT = 200 * time.Millisecond
	p0TPOT = 20 * time.Millisecond
	p1E2E  = 5 * time.Second
)
