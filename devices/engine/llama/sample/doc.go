// Package sample draws the next token from a row of logits. It is pure: the
// same sampler state, logits and position give the same token in any process,
// so a sequence can be continued elsewhere.
//
// It owns the order of the filters, the penalties' history and the generator.
// It knows no grammar: whoever holds one checks the drawn token, and on a
// refusal draws again among the candidates that it allows (Best, DrawAmong).
//
// Order: allowed tokens, bias, repetition penalty (over prompt and output),
// frequency and presence penalties (over output), suppressed tokens;
// then temperature, top_k, min_p, top_p. Each filter works on what the one
// before left. top_k keeps exactly k, ties going to the lower id; top_p keeps
// the fewest most likely tokens that reach p of the mass, and what ties with
// the last of them; min_p keeps what has at least min_p times the probability
// of the likeliest. Tokens less likely than e^-24 of the likeliest (4e-11)
// are never drawn.
package sample
