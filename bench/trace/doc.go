// Package trace reads recorded workloads: when requests arrived and how long
// they and their answers were, as JSON lines, plain or gzipped.
//
// A line has a time (timestamp: milliseconds since the start as a number, or a
// date), a prompt's length (input_length, ContextTokens or prompt_tokens), an
// output's length (output_length, GeneratedTokens or completion_tokens) and
// may have hash_ids: one number per 512 tokens of the prompt, equal numbers at
// the same place after equal numbers being equal text. Other fields are
// ignored.
//
// It does not own what is done with them.
package trace
