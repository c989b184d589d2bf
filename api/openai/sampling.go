package openai

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"

	"ieg"
)

// common are the options that chat and completions share.
type common struct {
	n             int
	stream        bool
	includeUsage  bool
	usageInChunks bool
	returnIDs     bool
	idsAsTokens   bool // logprobs name tokens by id
	sampling      ieg.Sampling
	maxTokens     int64 // 0: not given
	class         ieg.Class
	tenant        string
	noStore       bool
	requestID     string
}

// common reads the shared options. vocab bounds token ids.
func (s *Server) common(r *http.Request, f *fields, m *Model) common {
	c := common{
		n:         int(f.whole("n", 1, MaxChoices, 1)),
		stream:    f.boolean("stream", false),
		returnIDs: f.boolean("return_token_ids", false),
		tenant:    f.text("cache_salt", MaxIDBytes),
		noStore:   !f.boolean("store", true),

		idsAsTokens: f.boolean("return_tokens_as_token_ids", false),
	}
	f.text("user", MaxIDBytes)
	opts := f.sub("stream_options")
	if f.has("stream_options") && !c.stream {
		f.fail(bad("stream_options", "stream_options needs stream: true"))
	}
	c.includeUsage = opts.boolean("include_usage", false)
	c.usageInChunks = opts.boolean("continuous_usage_stats", false) && c.includeUsage
	f.adopt("stream_options", opts)
	if f.has("best_of") && f.whole("best_of", 1, MaxChoices, 1) != int64(c.n) {
		f.fail(unsupported("best_of", "best_of is not supported here, other than equal to n"))
	}
	c.sampling = s.sampling(f, m)
	c.maxTokens = f.whole("max_tokens", 1, math.MaxInt32, 0)
	if most := f.whole("max_completion_tokens", 1, math.MaxInt32, 0); most > 0 {
		c.maxTokens = most
	}
	c.sampling.MinTokens = int32(f.whole("min_tokens", 0, math.MaxInt32, 0))
	if c.maxTokens > 0 && int64(c.sampling.MinTokens) > c.maxTokens {
		f.fail(bad("min_tokens", "min_tokens is %d, more than max_tokens, %d", c.sampling.MinTokens, c.maxTokens))
	}
	c.class = classOf(r, f, c.stream)
	c.requestID = r.Header.Get("X-Request-Id")
	if id := f.text("request_id", MaxIDBytes); id != "" {
		if clientID(id) == "" {
			f.fail(bad("request_id", "request_id may only have visible ASCII characters without quotes"))
		}
		c.requestID = id
	}
	f.refuse("prompt_logprobs", "log-probabilities are reported for generated tokens only")
	f.refuse("bad_words", "use logit_bias")
	f.refuse("use_beam_search", "sequences are sampled")
	f.refuse("logits_processors", "code from clients is not run")
	f.refuse("kv_transfer_params", "KV is not handed over through this API")
	return c
}

// sampling reads how tokens are drawn.
func (s *Server) sampling(f *fields, m *Model) ieg.Sampling {
	p := ieg.Sampling{
		Temperature:       f.number("temperature", 0, 2, 1),
		TopP:              max(f.number("top_p", 0, 1, 1), 1e-6),
		TopK:              int32(f.whole("top_k", -1, math.MaxInt32, 0)),
		MinP:              f.number("min_p", 0, 1, 0),
		RepetitionPenalty: f.number("repetition_penalty", 0.01, 10, 1),
		PresencePenalty:   f.number("presence_penalty", -2, 2, 0),
		FrequencyPenalty:  f.number("frequency_penalty", -2, 2, 0),
		Logprobs:          -1,
		IncludeStop:       f.boolean("include_stop_str_in_output", false),
		IgnoreEOS:         f.boolean("ignore_eos", false),
		KeepSpecial:       !f.boolean("skip_special_tokens", true),
		StopTokens:        tokenList(f, "stop_token_ids", MaxStopTokens, m),
		AllowedTokens:     tokenList(f, "allowed_token_ids", MaxAllowed, m),
		LogitBias:         biases(f, m),
		Stop:              stops(f),
	}
	if f.has("seed") {
		p.Seed = uint64(f.whole("seed", math.MinInt64, math.MaxInt64, 0))
	} else {
		p.Seed = s.cfg.Random()
	}
	return p
}

func stops(f *fields) []string {
	list := oneOrList[string](f, "stop", "a string or a list of strings", MaxStops)
	for _, t := range list {
		if t == "" || len(t) > MaxStopBytes {
			f.fail(bad("stop", "a stop string has 1 to %d bytes, not %d", MaxStopBytes, len(t)))
		}
	}
	return list
}

// tokenList reads token ids of the model's vocabulary.
func tokenList(f *fields, name string, limit int, m *Model) []ieg.Token {
	var list []ieg.Token
	f.into(name, &list, "a list of token ids")
	if len(list) > limit {
		f.fail(bad(name, "%s has %d entries, the limit is %d", name, len(list), limit))
	}
	checkTokens(f, name, list, m)
	return list
}

func checkTokens(f *fields, name string, list []ieg.Token, m *Model) {
	for _, t := range list {
		if t < 0 || int32(t) >= m.Vocab {
			f.fail(bad(name, "%s has the token %d; the vocabulary of %s is 0 to %d", name, t, m.Name, m.Vocab-1))
			return
		}
	}
}

func biases(f *fields, m *Model) []ieg.TokenBias {
	const name = "logit_bias"
	var out []ieg.TokenBias
	for key, raw := range f.object(name, MaxBias) {
		id, err := strconv.ParseInt(key, 10, 32)
		var v float64
		switch {
		case err != nil || id < 0 || id >= int64(m.Vocab):
			f.fail(bad(name, "logit_bias has the key %q; keys are token ids, 0 to %d", utf8Bound(key, 32), m.Vocab-1))
		case json.Unmarshal(raw, &v) != nil || v < -100 || v > 100:
			f.fail(bad(name, "logit_bias of %s must be a number from -100 to 100", key))
		}
		out = append(out, ieg.TokenBias{Token: ieg.Token(id), Bias: float32(v)})
	}
	slices.SortFunc(out, func(a, b ieg.TokenBias) int { return int(a.Token - b.Token) })
	return out
}

// classOf maps priority and service tier to a class; see the package comment.
func classOf(r *http.Request, f *fields, stream bool) ieg.Class {
	priority := f.whole("priority", math.MinInt32, math.MaxInt32, 0)
	if h := r.Header.Get("X-Vllm-Priority"); h != "" {
		n, err := strconv.ParseInt(h, 10, 32)
		if err != nil {
			f.fail(bad("X-Vllm-Priority", "the header X-Vllm-Priority must be a whole number, not %q", utf8Bound(h, 32)))
		}
		priority = n
	}
	tier := f.text("service_tier", MaxIDBytes)
	switch {
	case priority < 0:
		return ieg.P0
	case priority > 0 || tier == "flex" || tier == "batch":
		return ieg.P2
	case stream:
		return ieg.P0
	}
	return ieg.P1
}
