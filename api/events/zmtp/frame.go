package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Flags of a frame.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// Message is what a peer sent: the frames of a message, or a command.
type Message struct {
	Frames  [][]byte
	Command string // its name; "" for a message
	Data    []byte // of a command
}

// readFrame reads one frame of at most FrameBytesMax bytes.
func readFrame(r io.Reader) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	size := uint64(head[1])
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, nil, fmt.Errorf("frame with flags %#x", flags)
	}
	if flags&flagLong != 0 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if size > FrameBytesMax {
		return 0, nil, fmt.Errorf("frame of %d bytes; at most %d", size, FrameBytesMax)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return flags, body, err
}

// readMessage reads one message or command.
func readMessage(r io.Reader) (m Message, err error) {
	for {
		flags, body, err := readFrame(r)
		if err != nil {
			return m, err
		}
		if flags&flagCommand != 0 {
			if len(m.Frames) > 0 {
				return m, errors.New("command inside a message")
			}
			m.Command, m.Data, err = parseCommand(body)
			return m, err
		}
		if m.Frames = append(m.Frames, body); len(m.Frames) > FramesMax {
			return m, fmt.Errorf("message of more than %d frames", FramesMax)
		}
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// parseCommand splits a command into its name and data.
func parseCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || body[0] == 0 || len(body) < 1+int(body[0]) {
		return "", nil, errors.New("command without a name")
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// socketType finds the peer's in the properties of its READY.
func socketType(props []byte) (string, error) {
	for len(props) > 0 {
		n := 1 + int(props[0])
		if len(props) < n+4 {
			return "", errors.New("READY is cut short")
		}
		name, size := string(props[1:n]), binary.BigEndian.Uint32(props[n:])
		props = props[n+4:]
		if uint64(size) > uint64(len(props)) {
			return "", errors.New("READY is cut short")
		}
		if name == "Socket-Type" {
			return string(props[:size]), nil
		}
		props = props[size:]
	}
	return "", errors.New("READY without a socket type")
}

// appendHead appends the head of a frame of n bytes.
func appendHead(b []byte, flags byte, n int) []byte {
	if n > 255 {
		return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(n))
	}
	return append(b, flags, byte(n))
}

// appendCommand appends a whole command.
func appendCommand(b []byte, name string, data []byte) []byte {
	b = appendHead(b, flagCommand, 1+len(name)+len(data))
	b = append(append(b, byte(len(name))), name...)
	return append(b, data...)
}

// Subscription reads a message as a change of subscriptions, in the form of
// ZMTP 3.0 (a message) or 3.1 (a command).
func Subscription(m Message) (topic string, on, ok bool) {
	switch {
	case m.Command == "SUBSCRIBE", m.Command == "CANCEL":
		return string(m.Data), m.Command == "SUBSCRIBE", true
	case m.Command == "" && len(m.Frames) == 1 && len(m.Frames[0]) > 0 && m.Frames[0][0] <= 1:
		return string(m.Frames[0][1:]), m.Frames[0][0] == 1, true
	}
	return "", false, false
}
