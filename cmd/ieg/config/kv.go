package config

import (
	"errors"
	"time"

	"ieg"
	"ieg/api/events"
	"ieg/kernel/spec"
)

// KV says where KV goes that the devices have no room for.
type KV struct {
	// Host is the size of the arena in main memory; AutoSize takes a share of
	// it, 0 does without.
	Host Size `yaml:"host"`
	// HostCodec is how the arena keeps KV: none, int8, or auto (none).
	HostCodec string `yaml:"host_codec"`
	// Lock keeps the arena from being swapped out, HugePages backs it by large
	// pages, both as far as the host allows.
	Lock      bool `yaml:"lock"`
	HugePages bool `yaml:"huge_pages"`
	// Policy says what gives way first: "value" or "lru".
	Policy string `yaml:"policy"`
	// CopyShare is the part of a step's time that copies to the arena may take, and
	// that those from it may.
	CopyShare float64 `yaml:"copy_share"`

	// NVMe is the size of the tier in the data folder; 0 does without.
	NVMe Size `yaml:"nvme"`
	// NVMeCodec is how it keeps KV: none, int8, or auto (when space is short).
	NVMeCodec string `yaml:"nvme_codec"`
	// Reserve of the disk is left free whatever else is set.
	Reserve Size `yaml:"reserve"`
	// WriteRate bounds what is written, in bytes a second, WriteDaily in bytes a
	// day; 0: unbounded.
	WriteRate  Size `yaml:"write_rate"`
	WriteDaily Size `yaml:"write_daily"`
	// TTL is how long unused KV is kept; 0: for ever.
	TTL Duration `yaml:"ttl"`
	// KeyFile holds 32 bytes, or 64 hexadecimal digits, with which the tier is
	// encrypted; "": it is not.
	KeyFile string `yaml:"key_file"`

	// Events is where KV events are published in vLLM's form, for example
	// "tcp://127.0.0.1:5557"; "" publishes none.
	Events string `yaml:"events"`
}

// Size is a number of bytes in text form: "4GiB", "500MB", "0", "auto".
type Size int64

// AutoSize leaves a size to the node.
const AutoSize = Size(-1)

// MarshalText writes the size.
func (s Size) MarshalText() ([]byte, error) {
	if s == AutoSize {
		return []byte("auto"), nil
	}
	return []byte(spec.FormatBytes(int64(s))), nil
}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(b []byte) error {
	switch string(b) {
	case "auto":
		*s = AutoSize
		return nil
	case "0", "off", "none":
		*s = 0
		return nil
	}
	n, err := spec.ParseBytes(string(b))
	if err == nil && n < 0 {
		err = errors.New("less than nothing")
	}
	*s = Size(n)
	return err
}

var codecs = []string{ieg.CompressNone, ieg.CompressINT8, ieg.CompressAuto}

// kv checks the tiers below the device.
func (c *checker) kv() {
	k := &c.e.KV
	c.oneOf("kv.host_codec", k.HostCodec, codecs)
	c.oneOf("kv.nvme_codec", k.NVMeCodec, codecs)
	c.oneOf("kv.policy", k.Policy, []string{"value", "lru"})
	if k.CopyShare < 0 || k.CopyShare > 0.5 {
		c.fail("kv.copy_share", "is %g, not in 0 … 0.5", k.CopyShare)
	}
	c.span("kv.ttl", k.TTL, 10*365*24*time.Hour)
	if k.Host > 0 && k.Host < HostMin {
		c.fail("kv.host", "is %s; at least %s, or 0 for none", spec.FormatBytes(int64(k.Host)), spec.FormatBytes(HostMin))
	}
	if k.NVMe > 0 && k.NVMe < NVMeMin {
		c.fail("kv.nvme", "is %s; at least %s, or 0 for none", spec.FormatBytes(int64(k.NVMe)), spec.FormatBytes(NVMeMin))
	}
	if k.NVMe > 0 && k.Host == 0 {
		c.fail("kv.nvme", "is %s, and kv.host is 0: what goes to the disk goes through host memory; set --kv-host, or --kv-nvme 0", spec.FormatBytes(int64(k.NVMe)))
	}
	if k.Events != "" {
		if _, err := events.ParseEndpoint(k.Events); err != nil {
			c.fail("kv.events", "%v", err)
		}
	}
	if k.WriteRate == AutoSize || k.WriteDaily == AutoSize {
		c.fail("kv.write_rate", "and write_daily are sizes or 0, not auto")
	}
}
