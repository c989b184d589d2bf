// Package bench measures the program against its limits and its peers: each
// group sets up once, runs its rounds with ours and theirs interleaved, and
// gives the rows that the project promises (docs/bench.md). The servers are
// real processes, the client is bench/load.
package bench
