// Package gbnf reads grammars in llama.cpp's notation (GBNF) and says which
// text may follow. It is pure.
//
// A grammar is checked before it is used: every rule is defined once, none is
// left-recursive (not even through rules that may be empty), sizes and
// repetitions are bounded. What Parse accepts can't loop or crash the engine;
// what would need too much memory while matching ends in Overflow.
//
// A State is the set of positions in the grammar that the text so far can have
// reached. A position is a place before a character and the chain of rules to
// return to; chains are shared and numbered, so equal positions are found
// equal. Text comes as the bytes of tokens, which may end inside a character.
//
// It has no notion of tokens but for Vocab, which finds all allowed tokens at
// once by walking the sorted vocabulary and skipping shared refused prefixes.
//
// Not taken over from llama.cpp: elements that name tokens (<…>).
package gbnf
