package main

import (
	"fmt"
	"net"
	"os"

	"ieg/api/events"
	"ieg/cmd/ieg/node"
)

// publish plugs the publisher of KV events into the loop, if it is wanted.
func (s *server) publish(plugs *node.Config) error {
	if s.cfg.KV.Events == "" {
		return nil
	}
	at, err := events.ParseEndpoint(s.cfg.KV.Events)
	if err != nil {
		return fmt.Errorf("kv.events: %w", err)
	}
	p, err := events.New(events.Config{Endpoint: at, Node: knownAs(s.addr), Log: s.log})
	if err != nil {
		return fmt.Errorf("%w; choose another address by --kv-events, or none", err)
	}
	s.later(func() {
		if err := p.Close(); err != nil {
			s.log.Debug("KV events", "error", err)
		}
	})
	s.log.Info("KV events hold the tokens of users' texts", "published", p.Addr().String())
	plugs.Kernel.KV.Events = true
	plugs.Observers = append(plugs.Observers, p)
	return nil
}

// knownAs is an address under which others may know this node: where it
// listens, with the host's name for every address.
func knownAs(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return listen
	}
	name, err := os.Hostname()
	if err != nil {
		return listen
	}
	return net.JoinHostPort(name, port)
}
