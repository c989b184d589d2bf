package openai

import "ieg"

// appendTokenName appends a token's text, or "token_id:N" if the client
// wants that.
func (x *exchange) appendTokenName(b []byte, t *tokenText) []byte {
	if x.opt.idsAsTokens {
		b = append(b, `"token_id:`...)
		return append(appendInt(b, t.token), '"')
	}
	return appendString(b, t.bytes)
}

// appendChatLogprobs appends the entries of a chat's logprobs.content.
func (x *exchange) appendChatLogprobs(b []byte, list []logprob) []byte {
	one := func(t *tokenText) {
		b = append(b, `{"token":`...)
		b = x.appendTokenName(b, t)
		b = append(b, `,"logprob":`...)
		b = appendFloat(b, t.value)
		b = append(b, `,"bytes":`...)
		b = appendInts(b, t.bytes)
	}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		one(&list[i].chosen)
		b = append(b, `,"top_logprobs":[`...)
		for j := range list[i].top {
			if j > 0 {
				b = append(b, ',')
			}
			one(&list[i].top[j])
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return b
}

// appendTextLogprobs appends the logprobs object of completions. offset is
// the place of the first token in the text, in bytes; the place behind the
// last one is returned.
func (x *exchange) appendTextLogprobs(b []byte, list []logprob, offset int) ([]byte, int) {
	b = append(b, `{"text_offset":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, int32(offset))
		offset += len(list[i].chosen.bytes)
	}
	b = append(b, `],"token_logprobs":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFloat(b, list[i].chosen.value)
	}
	b = append(b, `],"tokens":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.appendTokenName(b, &list[i].chosen)
	}
	b = append(b, `],"top_logprobs":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.appendTop(b, &list[i])
	}
	return append(b, "]}"...), offset
}

// appendTop appends a map from token to log-probability. The drawn token is
// in it even if it is not among the best.
func (x *exchange) appendTop(b []byte, l *logprob) []byte {
	b = append(b, '{')
	seen := make([]ieg.Token, 0, MaxLogprobs+1)
	for i := -1; i < len(l.top); i++ {
		t := &l.chosen
		if i >= 0 {
			t = &l.top[i]
		}
		dup := false
		for _, s := range seen {
			dup = dup || s == t.token
		}
		if dup {
			continue
		}
		if len(seen) > 0 {
			b = append(b, ',')
		}
		seen = append(seen, t.token)
		b = x.appendTokenName(b, t)
		b = append(b, ':')
		b = appendFloat(b, t.value)
	}
	return append(b, '}')
}
