// Package zmtp speaks the listening side of ZMTP 3.1 with the NULL mechanism:
// what a PUB or ROUTER socket needs on one TCP connection. It is small because
// publishing is: a greeting, a READY command, frames, subscriptions, PING.
//
// The pure-Go library of the field, zmq4, is used by the tests as the peer and
// not here: its PUB socket writes to all subscribers in turn without a
// deadline, so that one that stops reading stops the others; its accept loop
// waits in the handshake of one client for as long as that likes; and it
// allocates frames of whatever length a peer announces.
//
// All that a peer sends is bounded (limits.go). Deadlines are the caller's, on
// the net.Conn, but for writes: those end after Config.WriteWait.
package zmtp
