package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const mooncake = `{"timestamp": 1000, "input_length": 1100, "output_length": 20, "hash_ids": [1, 2, 3]}

{"timestamp": 400, "input_length": 600, "output_length": 1, "hash_ids": [1, 4]}
`

var wantMooncake = []Record{
	{0, 600, 1, []int64{1, 4}},
	{600 * time.Millisecond, 1100, 20, []int64{1, 2, 3}},
}

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader(mooncake))
	if err != nil || !reflect.DeepEqual(got, wantMooncake) {
		t.Fatalf("%+v, %v", got, err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(mooncake)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if got, err = Read(&b); err != nil || !reflect.DeepEqual(got, wantMooncake) {
		t.Fatalf("gzipped: %+v, %v", got, err)
	}
	azure := `{"timestamp":"2023-11-16 18:17:03.9799600","ContextTokens":4808,"GeneratedTokens":10}
{"timestamp":"2023-11-16T18:17:04.9799600Z","prompt_tokens":5,"completion_tokens":0}`
	want := []Record{{0, 4808, 10, nil}, {time.Second, 5, 0, nil}}
	if got, err = Read(strings.NewReader(azure)); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("with dates: %+v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, s := range []string{
		`{`, `[]`, `{"timestamp":0}`, `{"timestamp":0,"input_length":0,"output_length":1}`, `{"input_length":1,"output_length":1}`,
		`{"timestamp":"yesterday","input_length":1,"output_length":1}`, `{"timestamp":1e300,"input_length":1,"output_length":1}`,
		`{"timestamp":0,"input_length":99999999,"output_length":1}`, `{"timestamp":0,"input_length":1,"output_length":-2}`,
	} {
		if _, err := Read(strings.NewReader(s)); !errors.Is(err, ErrLine) || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", s, err)
		}
	}
	if _, err := Read(strings.NewReader("\x1f\x8bnonsense")); err == nil {
		t.Error("broken gzip was read")
	}
	if _, err := Read(strings.NewReader(strings.Repeat("x", LineMax+1))); err == nil {
		t.Error("an endless line was read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(mooncake))
	f.Add([]byte(`{"timestamp":"2023-11-16 18:17:03","ContextTokens":1,"GeneratedTokens":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		recs, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for i, r := range recs {
			if r.At < 0 || i > 0 && r.At < recs[i-1].At || r.Input < 1 || r.Output < 0 {
				t.Fatalf("record %d of %+v", i, recs)
			}
		}
	})
}
