// Package text turns the bytes of tokens into text that may be shown, and
// finds strings in text that arrives in pieces. It is pure.
//
// A Stream never gives half a character: bytes that may still become one wait;
// bytes that can't are replaced by U+FFFD, one for each maximal part of a
// character. It never gives what may still turn out to be a stop string. The
// text and the stop depend on the bytes only, not on how they were cut into
// pieces.
//
// Of several stop strings that occur, the one that is complete first counts;
// of those complete at the same place, the longest.
package text
