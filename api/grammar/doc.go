// Package grammar turns JSON schemas, regular expressions, choices and tool
// definitions into GBNF, the grammar language of llama.cpp's sampler. It is
// pure.
package grammar
