package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"ieg/bench/load"
)

// words make prompts that no two requests share by accident and that a small
// model continues with ordinary text.
var words = strings.Fields(`the a one every old small bright river mountain garden window letter story
teacher engineer sailor market winter summer morning evening train bridge road house village city
walked looked found made wrote carried opened closed asked answered remembered forgot painted
slowly quickly together again because although while before after under over near behind between
and or but with without of from to in on at by for about stone water paper glass music number`)

// prose is n words of seeded text.
func prose(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(12) == 0 {
			b.WriteByte('.')
		}
	}
	return b.String()
}

// tokensOf turns seeded text into exactly n tokens of the server's model.
func tokensOf(ctx context.Context, c *load.Client, seed uint64, n int) ([]int, error) {
	var out struct {
		Tokens []int `json:"tokens"`
	}
	if err := c.Post(ctx, "/tokenize", load.Body{"prompt": prose(seed, n+16), "add_special_tokens": false}, &out); err != nil {
		return nil, err
	}
	if len(out.Tokens) < n {
		return nil, fmt.Errorf("%d words gave %d tokens, %d are needed", n+16, len(out.Tokens), n)
	}
	return out.Tokens[:n], nil
}

// chat is a chat body with one user message.
func chat(system, user string, output int) load.Body {
	var msgs []load.Body
	if system != "" {
		msgs = append(msgs, load.Body{"role": "system", "content": system})
	}
	msgs = append(msgs, load.Body{"role": "user", "content": user})
	return load.Body{"messages": msgs, "max_tokens": output, "temperature": 0, "ignore_eos": true}
}

// completion is a completion of exact tokens.
func completion(prompt []int, output int) load.Body {
	return load.Body{"prompt": prompt, "max_tokens": output, "temperature": 0, "ignore_eos": true}
}
