package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"ieg"
)

// sampleBatch uses every field.
func sampleBatch() *ieg.Batch {
	return &ieg.Batch{
		Engine: 3, Epoch: 7, Step: 300, Grant: 4,
		Drop: []ieg.SeqID{9, 1 << 40},
		New: []ieg.SeqStart{{
			Seq: 11, Slot: 2, Tokens: []ieg.Token{1, 300, 49151}, Prompt: 2, MaxTokens: 64, Embed: true,
			Sampling: ieg.Sampling{
				Temperature: 0.5, TopK: 40, TopP: 0.95, MinP: 0.05, RepetitionPenalty: 1.5, PresencePenalty: 0.25,
				FrequencyPenalty: -1, LogitBias: []ieg.TokenBias{{Token: 5, Bias: -100}}, AllowedTokens: []ieg.Token{6, 7},
				Seed: math.MaxUint64, Choice: 1, Logprobs: -1, Grammar: "root ::= x", GrammarTriggers: []string{"<t>", ""},
				StopTokens: []ieg.Token{8}, Stop: []string{"é"}, IncludeStop: true, IgnoreEOS: true, MinTokens: 3, KeepSpecial: true,
			},
		}},
		Ops: []ieg.KVOp{
			{Kind: ieg.KVCopy, From: 1, To: 2, N: 128}, {Kind: ieg.KVTrim, From: ieg.NoSlot, To: 3, N: 0},
			{Kind: ieg.KVLoad, To: 1, Start: 256, N: 64, Sum: 0x0123456789abcdef, Open: true, Extents: []ieg.Extent{{
				Start: 256, N: 65, Codec: ieg.CodecINT8, Bytes: 300, Digest: 0xfedcba9876543210, Pages: []ieg.Page{5, math.MaxUint32},
			}}},
		},
		Work: []ieg.Work{{Seq: 11, Slot: 2, Start: 128, N: 1, Sample: true}, {Seq: 12, Slot: 0, Start: 0, N: 512}},
	}
}

func sampleDone() *ieg.StepDone {
	return &ieg.StepDone{
		Engine: 3, Epoch: 7, Step: 300, Repeat: 2, Last: true, Outcome: ieg.StepOK, Err: "why", Took: 21 * time.Millisecond,
		Results: []ieg.SeqResult{
			{Seq: 11, Computed: 1, Sampled: true, Token: 49151, Text: []byte("é "), Stop: ieg.StopEnd, StopText: "end",
				Logprob: &ieg.Logprob{
					Chosen: ieg.TokenLogprob{Token: 5, Logprob: -0.5, Bytes: []byte{0xC3}},
					Top:    []ieg.TokenLogprob{{Token: 6, Logprob: float32(math.Inf(-1))}},
				}},
			{Seq: 12, Computed: 512, Vector: []float32{0.5, -1}},
		},
		Copies: []ieg.CopyDone{{Op: 2, Digest: 0xfedcba9876543210, Bad: 3, Took: 300, Ran: 5}},
	}
}

func sampleCalls() map[byte]*call {
	return map[byte]*call{
		frameTokenize:   {ID: 1, Parts: []Part{{Text: "<s>", Special: true}, {Text: "é"}}},
		frameTokens:     {ID: 2, Tokens: []ieg.Token{1, 49151}},
		frameDetokenize: {ID: 300, Tokens: []ieg.Token{0}},
		frameText:       {ID: 1 << 50, Text: "hello"},
		frameRefused:    {ID: 5, Err: fmt.Errorf("too long: %w", ieg.ErrContextLength)},
	}
}

// TestGolden pins the bytes: a change of them needs another protocolVersion.
func TestGolden(t *testing.T) {
	golden := []struct {
		name string
		body []byte
		want string
	}{
		{"hello", appendHello(nil, hello{Version: 5, Plane: ctlPlane, Engine: 3, Epoch: 300}), "69656720656e67696e650a050203ac02"},
		{"batch", appendBatch(nil, sampleBatch()), "0307ac0204" + "0209808080808020" + "010b020301ac02ffff02024001" +
			"0000003f283333733fcdcc4c3d0000c03f0000803e000080bf01050000c8c2020607ffffffffffffffffff0101ffffffff0f" +
			"0a726f6f74203a3a3d2078" + "02033c743e00" + "0108" + "0102c3a9" + "01010301" +
			"03" + "010102800100" + "0000000000000000000000" + "00ffffffff0f030000" + "0000000000000000000000" +
			"030001408002" + "efcdab89674523010001" + "01" + "80024101ac02" + "1032547698badcfe" + "0205ffffffff0f" + "020b0280010101" + "0c0000800400"},
		{"done", appendDone(nil, sampleDone()), "0307ac0202010003776879c0de810a02" + "0b011fffff0203c3a9200103656e64" +
			"05000000bf01c301" + "06000080ff00" + "0c800420020000003f000080bf" + "0102" + "1032547698badcfe" + "03ac0205"},
		{"step", appendStepRef(nil, stepRef{Epoch: 7, Step: 300}), "07ac02"},
		{"failed", appendError(nil, Permanent(fmt.Errorf("x: %w", ieg.ErrOutOfMemory))), "0201" + "10" + hex.EncodeToString([]byte("x: out of memory"))},
		{"tokenize", appendCall(nil, frameTokenize, sampleCalls()[frameTokenize]), "010201033c733e0002c3a9"},
		{"tokens", appendCall(nil, frameTokens, sampleCalls()[frameTokens]), "020201ffff02"},
		{"detokenize", appendCall(nil, frameDetokenize, sampleCalls()[frameDetokenize]), "ac020100"},
		{"text", appendCall(nil, frameText, sampleCalls()[frameText]), "8080808080808002" + "0568656c6c6f"},
	}
	for _, g := range golden {
		if got := hex.EncodeToString(g.body); got != g.want {
			t.Errorf("%s:\n got %s\nwant %s", g.name, got, g.want)
		}
	}
}

func TestLeastSizes(t *testing.T) {
	empty := appendSeqStart(nil, &ieg.SeqStart{})
	if len(empty) != seqStartSize {
		t.Errorf("an empty sequence takes %d bytes, the least is said to be %d", len(empty), seqStartSize)
	}
	if n := len(appendResult(nil, &ieg.SeqResult{})); n != resultSize {
		t.Errorf("an empty result takes %d bytes, the least is said to be %d", n, resultSize)
	}
	op, extent := len(appendOp(nil, &ieg.KVOp{})), len(appendExtent(nil, &ieg.Extent{}))
	if op != opSize || extent != extentSize {
		t.Errorf("an empty operation and extent take %d and %d bytes, the least are said to be %d and %d", op, extent, opSize, extentSize)
	}
	if n := len(appendDone(nil, &ieg.StepDone{Copies: make([]ieg.CopyDone, 1)})) - len(appendDone(nil, &ieg.StepDone{})); n != copySize {
		t.Errorf("an empty copy takes %d bytes, the least is said to be %d", n, copySize)
	}
}

func TestRoundTripBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var got ieg.Batch
	for i := range 300 {
		want := sampleBatch()
		if i > 0 {
			want = randomBatch(rng)
		}
		body := appendBatch(nil, want)
		if err := decodeBatch(body, &got); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		if again := appendBatch(nil, &got); !bytes.Equal(body, again) {
			t.Fatalf("batch %d: %+v became %+v", i, want, got)
		}
		if i == 0 && !reflect.DeepEqual(*want, got) {
			t.Fatalf("%+v became %+v", want, got)
		}
	}
}

func TestRoundTripDone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var got ieg.StepDone
	for i := range 300 {
		want := sampleDone()
		if i > 0 {
			want = randomDone(rng)
		}
		body := appendDone(nil, want)
		if err := decodeDone(body, &got); err != nil {
			t.Fatalf("report %d: %v", i, err)
		}
		if again := appendDone(nil, &got); !bytes.Equal(body, again) {
			t.Fatalf("report %d: %+v became %+v", i, want, got)
		}
		if i == 0 && (!reflect.DeepEqual(want.Results[0], got.Results[0]) || !reflect.DeepEqual(want.Copies, got.Copies) || got.Took != want.Took || !got.Last || got.Err != "why") {
			t.Fatalf("%+v became %+v", want, got)
		}
	}
}

func TestRoundTripCalls(t *testing.T) {
	for typ, want := range sampleCalls() {
		got, err := decodeCall(typ, appendCall(nil, typ, want))
		if err != nil {
			t.Fatalf("frame %d: %v", typ, err)
		}
		if typ == frameRefused {
			if !errors.Is(got.Err, ieg.ErrContextLength) || got.Err.Error() != want.Err.Error() {
				t.Errorf("error became %v", got.Err)
			}
			got.Err, want.Err = nil, nil
		}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("frame %d: %+v became %+v", typ, *want, got)
		}
	}
	if _, err := decodeCall(frameBatch, []byte{1}); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("a batch on the control plane: %v", err)
	}
}

func TestErrorsKeepIdentity(t *testing.T) {
	for _, identity := range []error{ieg.ErrUnsupported, ieg.ErrOutOfMemory, ieg.ErrBusy, fs.ErrNotExist, fs.ErrPermission} {
		want := fmt.Errorf("file x: %w", identity)
		got, err := decodeError(appendError(nil, want))
		if err != nil || !errors.Is(got, identity) || got.Error() != want.Error() || isPermanent(got) != isPermanent(want) {
			t.Errorf("%v became %v (%v), permanent %t", want, got, err, isPermanent(got))
		}
	}
	got, err := decodeError(appendError(nil, Permanent(errors.New("libllama.so is missing"))))
	if err != nil || !isPermanent(got) || isPermanent(errors.New("x")) {
		t.Errorf("the mark was lost: %v (%v)", got, err)
	}
	long, err := decodeError(appendError(nil, errors.New(strings.Repeat("é", MessageBytes))))
	if err != nil || len(long.Error()) > MessageBytes || !strings.HasSuffix(long.Error(), "é") {
		t.Errorf("a long message became %d bytes (%v)", len(long.Error()), err)
	}
}

func TestInfoCarriesHiddenFields(t *testing.T) {
	want := ieg.EngineInfo{Layout: ieg.Streams, Model: ieg.ModelInfo{
		Name: "m", ChatTemplate: "{{ x }}", EOG: []ieg.Token{2}, BOSText: "<s>", EOSText: "</s>", ControlText: []string{"<s>"},
	}}
	body, err := appendInfo(nil, &want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeInfo(body)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v became %+v (%v)", want, got, err)
	}
	if _, err := decodeSpec([]byte(`{"backend":"x","bakend":"y"}`)); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := decodeSpec([]byte(`{} {}`)); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("bytes left over: %v", err)
	}
}

func TestHelloOfAnotherVersion(t *testing.T) {
	body := append(appendHello(nil, hello{Version: 1}), "a form not known here"...)
	if _, err := decodeHello(body); !errors.Is(err, ieg.ErrProtocol) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("error %v should tell of version 1", err)
	}
	if _, err := decodeHello([]byte("GET / HTTP/1.1")); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("a stranger: %v", err)
	}
}

// TestStrict: every cut of a valid body, and a byte more, is refused.
func TestStrict(t *testing.T) {
	batch, done := appendBatch(nil, sampleBatch()), appendDone(nil, sampleDone())
	for n := range len(batch) {
		if err := decodeBatch(batch[:n], &ieg.Batch{}); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("batch cut at %d: %v", n, err)
		}
	}
	for n := range len(done) {
		if err := decodeDone(done[:n], &ieg.StepDone{}); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("report cut at %d: %v", n, err)
		}
	}
	wrong := sampleDone()
	wrong.Copies[0].Bad = -1
	if err := decodeDone(appendDone(nil, wrong), &ieg.StepDone{}); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("report of bad extent -1: %v", err)
	}
	if err := decodeBatch(append(batch, 0), &ieg.Batch{}); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("batch with a byte more: %v", err)
	}
	for name, body := range map[string][]byte{
		"varint not the shortest": {0x83, 0x00},
		"engine over 32 bits":     {0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"varint without an end":   {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"huge list":               {1, 1, 1, 0, 0xff, 0xff, 0x03},
	} {
		if err := decodeBatch(body, &ieg.Batch{}); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFrames(t *testing.T) {
	var stream []byte
	var want []string
	for i, n := range []int{0, 1, 100, readBytes - 6, readBytes - 5, readBytes, 3 * growBytes, 5} {
		start := len(stream)
		stream = openFrame(stream, byte(i+1))
		body := strings.Repeat(string(rune('a'+i)), n)
		stream = append(stream, body...)
		var err error
		if stream, err = closeFrame(stream, start); err != nil {
			t.Fatal(err)
		}
		want = append(want, body)
	}
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(stream), "halves": iotest.HalfReader(bytes.NewReader(stream))} {
		f := newFrameReader(r)
		for i, w := range want {
			typ, body, err := f.next()
			if err != nil || typ != byte(i+1) || string(body) != w {
				t.Fatalf("%s: frame %d: type %d, %d bytes (%v), want %d", name, i, typ, len(body), err, len(w))
			}
		}
		if _, _, err := f.next(); err != io.EOF {
			t.Errorf("%s: end: %v", name, err)
		}
	}
	for n := 1; n < 10; n++ {
		f := newFrameReader(bytes.NewReader([]byte{9, 0, 0, 0, 1, 2, 3, 4, 5, 6}[:n]))
		if _, _, err := f.next(); err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for _, head := range [][]byte{{0, 0, 0, 0}, {1, 0, 0, 4}, {0xff, 0xff, 0xff, 0xff}} {
		if _, _, err := newFrameReader(bytes.NewReader(head)).next(); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("length % x: %v", head, err)
		}
	}
}

// TestFrameMemory: a length without bytes behind it takes little memory.
func TestFrameMemory(t *testing.T) {
	head := []byte{0, 0, 0, 4} // 64 MiB
	f := newFrameReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, 100))))
	if _, _, err := f.next(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if cap(f.big) > 2*growBytes {
		t.Errorf("%d bytes of memory for a frame that never came", cap(f.big))
	}
}

func randomBatch(rng *rand.Rand) *ieg.Batch {
	b := &ieg.Batch{Engine: ieg.EngineID(rng.Uint32()), Epoch: ieg.Epoch(rng.Uint32()), Step: ieg.StepID(rng.Uint64()), Grant: rng.Int32()}
	for range rng.IntN(4) {
		b.Drop = append(b.Drop, ieg.SeqID(rng.Uint64()))
	}
	for range rng.IntN(3) {
		s := ieg.SeqStart{Seq: ieg.SeqID(rng.Uint64()), Slot: ieg.Slot(rng.Int32()), Prompt: rng.Int32(), MaxTokens: -rng.Int32(), Embed: rng.IntN(2) == 0}
		for range rng.IntN(50) {
			s.Tokens = append(s.Tokens, ieg.Token(rng.Uint32()))
		}
		s.Sampling.Temperature = math.Float32frombits(rng.Uint32())
		s.Sampling.Seed = rng.Uint64()
		for range rng.IntN(3) {
			s.Sampling.Stop = append(s.Sampling.Stop, strings.Repeat("x", rng.IntN(200)))
		}
		b.New = append(b.New, s)
	}
	for range rng.IntN(4) {
		b.Ops = append(b.Ops, randomOp(rng))
	}
	for range rng.IntN(300) {
		b.Work = append(b.Work, ieg.Work{Seq: ieg.SeqID(rng.Uint64()), Slot: ieg.Slot(rng.Int32()), Start: rng.Int32(), N: rng.Int32(), Sample: rng.IntN(2) == 0})
	}
	return b
}

func randomOp(rng *rand.Rand) ieg.KVOp {
	op := ieg.KVOp{Kind: ieg.KVOpKind(rng.IntN(4)), From: ieg.Slot(rng.Int32()), To: ieg.Slot(-rng.Int32()), N: rng.Int32(), Start: -rng.Int32(),
		Sum: rng.Uint64(), Next: rng.IntN(2) == 0, Open: rng.IntN(2) == 0}
	for range rng.IntN(4) {
		e := ieg.Extent{Start: rng.Int32(), N: rng.Int32(), Codec: ieg.Codec(rng.IntN(2)), Bytes: rng.Int64(), Digest: rng.Uint64()}
		for range rng.IntN(20) {
			e.Pages = append(e.Pages, ieg.Page(rng.Uint32()))
		}
		op.Extents = append(op.Extents, e)
	}
	return op
}

func randomDone(rng *rand.Rand) *ieg.StepDone {
	d := &ieg.StepDone{Engine: ieg.EngineID(rng.Uint32()), Step: ieg.StepID(rng.Uint64()), Repeat: rng.Int32(), Outcome: ieg.Outcome(rng.IntN(3)), Took: time.Duration(rng.Int64())}
	for range rng.IntN(300) {
		r := ieg.SeqResult{Seq: ieg.SeqID(rng.Uint64()), Computed: rng.Int32(), Sampled: rng.IntN(2) == 0, Stop: ieg.StopReason(rng.IntN(8))}
		if r.Sampled {
			r.Token = ieg.Token(rng.Uint32())
		}
		r.Text = []byte(strings.Repeat("y", rng.IntN(20)))
		if rng.IntN(5) == 0 {
			r.Logprob = &ieg.Logprob{Top: make([]ieg.TokenLogprob, rng.IntN(5))}
		}
		if rng.IntN(5) == 0 {
			r.Vector = make([]float32, rng.IntN(64))
		}
		d.Results = append(d.Results, r)
	}
	for range rng.IntN(4) {
		d.Copies = append(d.Copies, ieg.CopyDone{Op: rng.Int32(), Digest: rng.Uint64(), Bad: rng.Int32(), Took: time.Duration(rng.Int64()), Ran: time.Duration(rng.Int64())})
	}
	return d
}
