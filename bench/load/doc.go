// Package load is a client of an OpenAI-compatible server that notes when each
// token arrives. The same client drives ieg and its peers, so that a
// comparison measures the servers.
package load
