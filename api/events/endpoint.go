package events

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Form is how an event is encoded.
type Form uint8

// The forms.
const (
	Maps   Form = iota // vLLM since June 2026
	Arrays             // before
)

// Endpoint is where and how events are published.
type Endpoint struct {
	Publish string // "host:port" of the PUB socket
	Replay  string // "host:port" of the ROUTER socket; "" for none
	Form    Form
}

// ParseEndpoint reads "tcp://HOST:PORT", with "?replay=PORT" for replays and
// "?events=arrays" for the old form of events. Without a host it is the
// loopback; "*" is every address of the host.
func ParseEndpoint(text string) (e Endpoint, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "tcp" || u.Port() == "" || u.Path != "" || u.User != nil || u.Fragment != "" {
		return e, fmt.Errorf("%q is not an address such as tcp://127.0.0.1:5557", text)
	}
	host := u.Hostname()
	switch host {
	case "":
		host = "127.0.0.1"
	case "*":
		host = ""
	}
	if e.Publish, err = address(host, u.Port()); err != nil {
		return e, err
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return e, fmt.Errorf("%q: %w", text, err)
	}
	for key := range options {
		switch value := options.Get(key); {
		case key == "replay":
			if e.Replay, err = address(host, value); err != nil {
				return e, err
			}
		case key == "events" && value == "arrays":
			e.Form = Arrays
		case key == "events" && value == "maps":
		default:
			return e, fmt.Errorf("%q: unknown option %s=%s; there are replay=PORT, events=maps and events=arrays", text, key, value)
		}
	}
	return e, nil
}

func address(host, port string) (string, error) {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is not the number of a port", port)
	}
	return net.JoinHostPort(host, port), nil
}
