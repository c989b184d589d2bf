// Package lib finds the engine's C libraries for the CPU: embedded in the
// binary (build tag embedlib, set by "make build") and unpacked once, or
// fetched into the user's cache by "make engine".
//
// It owns the folders below <cache>/lib whose names begin with the version's;
// their MANIFEST says what a complete one holds. Folders appear whole, by a
// rename, so that any number of processes may start at once and none sees half
// a library. It doesn't load libraries and knows no other backend: those are
// folders given by name.
package lib
