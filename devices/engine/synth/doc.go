// Package synth is an engine without a model: a token is a function of the
// seed and the tokens before it, nothing else (with a temperature above 0
// also of the sequence's own seed and choice; constraints such as a logit
// bias change it in a documented way, see draw.go).
//
// It keeps KV as a checker: each position of a slot holds a hash of all tokens
// up to it, and a step whose slots do not hold exactly the tokens that come
// before its work is refused with the numbers. So a wrong trim, copy, slot or
// start shows at once, and equal requests give equal texts however they were
// batched, chunked, preempted or moved.
//
// Blocks in the arena hold these hashes too, each with the one before it and
// with words that prove both (copy.go): a block that was mixed up, torn or
// changed is refused when it is loaded.
//
// It owns no clock unless LoadSpec.Synth.Sleep is set: the times of a step are
// computed and only reported, which is what a simulation wants.
package synth
