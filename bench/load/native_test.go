package load

import (
	"slices"
	"strings"
	"testing"
)

func TestNativeStreamTellsTokensAndUsage(t *testing.T) {
	const stream = `data: {"content":"a","tokens":[317],"stop":false,"tokens_predicted":1,"tokens_evaluated":9}

data: {"content":"","tokens":[28],"stop":false}

data: {"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":2,"tokens_evaluated":9,"timings":{"cache_n":4}}
`
	var tr Trace
	if err := tr.followNative(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tr.IDs, []int{317, 28}) || len(tr.Tokens) != 2 || tr.Text != "a" || tr.Finish != "limit" {
		t.Errorf("%+v", tr)
	}
	if u := tr.Usage; u.PromptTokens != 9 || u.CompletionTokens != 2 || u.Details.Cached != 4 {
		t.Errorf("usage %+v", u)
	}
	for _, bad := range []string{"", `data: {"content":"a","tokens":[1],"stop":false}`, `data: {"error":{"code":500}}`, "data: x"} {
		if err := new(Trace).followNative(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a whole stream", bad)
		}
	}
}

func TestStreamTellsTokenIDs(t *testing.T) {
	const stream = `data: {"choices":[{"text":"a","token_ids":[5,6]}]}

data: {"choices":[{"text":"b","finish_reason":"length","token_ids":[7]}]}

data: [DONE]
`
	var tr Trace
	if err := tr.follow(strings.NewReader(stream), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tr.IDs, []int{5, 6, 7}) || tr.Text != "ab" {
		t.Errorf("%+v", tr)
	}
}
