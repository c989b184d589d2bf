package enginetest

import (
	"testing"

	"ieg"
	"ieg/devices/engine"
)

// Options say what the suite may ask of an engine.
type Options struct {
	// Exact: equal sequences give equal tokens whatever else is in the batch
	// or the engine, and however the prompt was split. llama.cpp promises
	// this only for runs alone in a cleared engine.
	Exact bool
	// Embedding: the engine was loaded for vectors.
	Embedding bool
	// EmbedOnly: it can do nothing else.
	EmbedOnly bool
	// Prompt is a text of some dozen tokens; "" is a default.
	Prompt string
	// Arena is the one that the engine was loaded with, in the suite's own
	// process; nil: KV can't leave the engine. RunChild makes one.
	Arena engine.Arena
}

const defaultPrompt = "The quick brown fox jumps over the lazy dog. Once upon a time there was a"

// Run checks a Runner. open returns a loaded one for each sub-test; it may
// return the same one again after the suite has dropped all sequences and
// trimmed all slots. Closing it is open's affair (t.Cleanup).
func Run(t *testing.T, o Options, open func(t testing.TB) engine.Runner) {
	if o.Prompt == "" {
		o.Prompt = defaultPrompt
	}
	for _, c := range cases {
		if c.embed != o.EmbedOnly && o.EmbedOnly || c.embed && !o.Embedding {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, open(t), o)
			if c.exact && !o.Exact {
				t.Skip("the engine does not promise equal tokens here")
			}
			if c.prefixes && !b.info.Prefixes {
				t.Skip("the engine's slots can't be trimmed and copied")
			}
			if c.kv {
				b.needKV()
			}
			defer b.clear()
			c.run(t, b)
		})
	}
}

// cases are the suite in the order in which it runs.
var cases = []struct {
	name     string
	exact    bool // needs Options.Exact
	prefixes bool // needs EngineInfo.Prefixes
	kv       bool // needs EngineInfo.KVToken and Options.Arena
	embed    bool // is about vectors
	run      func(*testing.T, *bench)
}{
	{name: "info", run: testInfo},
	{name: "tokenize", run: testTokenize},
	{name: "contract", run: testContract},
	{name: "failed step", run: testFailedStep},
	{name: "generate", run: testGenerate},
	{name: "empty work", run: testEmptyWork},
	{name: "stop token", run: testStopToken},
	{name: "stop string", run: testStopString},
	{name: "min tokens", run: testMinTokens},
	{name: "logprobs", run: testLogprobs},
	{name: "seed", run: testSeed},
	{name: "chunked prefill", exact: true, run: testChunked},
	{name: "batch is each alone", exact: true, run: testBatch},
	{name: "trim", exact: true, prefixes: true, run: testTrim},
	{name: "copy", exact: true, prefixes: true, run: testCopy},
	{name: "prefixes stay usable", prefixes: true, run: testPrefixes},
	{name: "replay", exact: true, run: testReplay},
	{name: "replay texts", run: testReplayTexts},
	{name: "abort", run: testAbort},
	{name: "tokenize beside steps", run: testTokenizeBeside},
	{name: "slot overflow", run: testOverflow},
	{name: "kv: save and load", kv: true, run: testSaveLoad},
	{name: "kv: save in one batch", kv: true, run: testSaveOn},
	{name: "kv: blocks as they are sealed", kv: true, run: testSealed},
	{name: "kv: tails", kv: true, run: testTails},
	{name: "kv: load behind what is kept", kv: true, prefixes: true, run: testLoadStart},
	{name: "kv: load a part", kv: true, run: testLoadPart},
	{name: "kv: load in pieces", kv: true, run: testLoadPieces},
	{name: "kv: load in operations of one batch", kv: true, run: testLoadOn},
	{name: "kv: order of operations", kv: true, run: testCopyOrder},
	{name: "kv: bad bytes", kv: true, run: testBadBytes},
	{name: "kv: bad pieces", kv: true, run: testBadPieces},
	{name: "kv: bad pieces of one batch", kv: true, run: testBadLoadsOn},
	{name: "kv: refused", kv: true, run: testCopyRefused},
	{name: "kv: aborted", kv: true, run: testCopyAborted},
	{name: "vectors", embed: true, run: testVectors},
}

// needKV skips a case of an engine that keeps its KV, and says why.
func (b *bench) needKV() {
	switch {
	case b.info.KVToken == 0 && b.info.KVNote == "":
		b.Fatal("KV can't leave the engine and it does not say why")
	case b.info.KVToken == 0:
		b.Skipf("KV can't leave the engine: %s", b.info.KVNote)
	case b.o.Arena == nil:
		b.Skip("the suite was given no arena")
	case b.info.Slots < 2:
		b.Skip("one slot only")
	}
}

// greedy is plain arg max.
func greedy() ieg.Sampling {
	return ieg.Sampling{TopP: 1, RepetitionPenalty: 1, Logprobs: -1}
}
