// Package zmtp speaks the listening side of ZMTP 3.1 with the NULL mechanism:
// what a PUB or ROUTER socket needs on one TCP connection. It is small because
// publishing is: a greeting, a READY command, frames, subscriptions, PING.
//
// The pure-Go library of the field, zmq4, is used by the tests as the peer and
// not here. Of 100 messages of 1 MB its PUB socket gave a subscriber 3, since it
// writes to all subscribers in turn, without a deadline, and another one did
// not read; nobody gets in while one client that says nothing is in the
// handshake; and nine bytes that announce a frame of 2^62 end the program.
//
// All that a peer sends is bounded (limits.go). Deadlines are the caller's, on
// the net.Conn, but for writes: those end after Config.WriteWait.
package zmtp
