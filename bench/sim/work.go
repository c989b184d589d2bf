package sim

import (
	"math/rand/v2"
	"time"

	"ieg"
)

// Work describes made-up requests.
type Work struct {
	Seed     uint64
	Requests int
	// Rate is arrivals per second, exponentially spaced; 0: all at once.
	Rate float64
	// Models are chosen evenly.
	Models []string
	// Vocab bounds the prompts' tokens, from FirstToken on.
	Vocab int32
	// PromptMax and OutputMax bound the lengths, in tokens.
	PromptMax, OutputMax int
	// Stems is the number of shared beginnings of prompts, each of about
	// half of PromptMax tokens; 0: prompts share nothing.
	Stems int
	// Chance of a request with N = 2 … 4, of a cancel, a pause, a deadline.
	Many, Cancel, Pause, Deadline float64
	// Embed is the chance of an embedding request.
	Embed float64
	// Tenants is the number of tenants; 0 and 1: the common one only.
	Tenants int
	// OneClass gives all requests class P1.
	OneClass bool
}

// FirstToken is the least token of made-up prompts: a word of the synthetic
// vocabulary, whatever its size.
const FirstToken = 300

// Make draws the requests: a function of its fields only.
func (k Work) Make() []Request {
	rng := rand.New(rand.NewPCG(k.Seed, 0x9e3779b9))
	words := func(n int) []ieg.Token {
		t := make([]ieg.Token, n)
		for i := range t {
			t[i] = FirstToken + ieg.Token(rng.Int32N(max(k.Vocab-FirstToken, 1)))
		}
		return t
	}
	stems := make([][]ieg.Token, k.Stems)
	for i := range stems {
		stems[i] = words(1 + rng.IntN(max(k.PromptMax/2, 1)))
	}
	out := make([]Request, k.Requests)
	at := time.Duration(0)
	for i := range out {
		if k.Rate > 0 {
			at += time.Duration(rng.ExpFloat64() / k.Rate * 1e9)
		}
		r := &ieg.Request{
			ID: ieg.RequestID(i + 1), Model: k.Models[rng.IntN(len(k.Models))], N: 1,
			Class: ieg.Class(rng.IntN(int(ieg.NumClasses))), Deadline: ieg.Never,
			MaxTokens: int32(1 + rng.IntN(k.OutputMax)), Sampling: ieg.Sampling{TopP: 1, RepetitionPenalty: 1, Logprobs: -1},
		}
		if k.OneClass {
			r.Class = ieg.P1
		}
		n := 1 + rng.IntN(k.PromptMax)
		if len(stems) > 0 && rng.IntN(4) > 0 {
			stem := stems[rng.IntN(len(stems))]
			r.Prompt = append(append(r.Prompt, stem...), words(1+rng.IntN(max(n/2, 1)))...)
		} else {
			r.Prompt = words(n)
		}
		out[i] = Request{At: at, Spec: r}
		k.behave(rng, &out[i])
	}
	return out
}

// behave draws what the client of a request does.
func (k Work) behave(rng *rand.Rand, q *Request) {
	r := q.Spec
	if rng.IntN(2) == 0 {
		r.Sampling.Temperature, r.Sampling.Seed = 1, rng.Uint64()
	}
	if rng.IntN(4) == 0 {
		r.Sampling.Stop = []string{"w7"}
	}
	if k.Tenants > 1 {
		r.Tenant = string(rune('a' + rng.IntN(k.Tenants)))
	}
	if rng.Float64() < k.Many {
		r.N = 2 + rng.IntN(3)
		r.Sampling.Temperature = 1
	}
	if rng.Float64() < k.Embed {
		r.Kind, r.N = ieg.Embed, 1
	}
	tokens := 1 + rng.IntN(int(r.MaxTokens)*r.N)
	if rng.Float64() < k.Cancel {
		if rng.IntN(2) == 0 {
			q.CancelAfter = tokens
		} else {
			q.CancelAt = time.Duration(1 + rng.Int64N(int64(2*time.Second)))
		}
	}
	if rng.Float64() < k.Pause {
		q.PauseAfter, q.PauseFor = tokens, time.Duration(1+rng.Int64N(int64(3*time.Second)))
	}
	if rng.Float64() < k.Deadline {
		r.Deadline = ieg.Time(1 + rng.Int64N(int64(4*time.Second)))
	}
}
