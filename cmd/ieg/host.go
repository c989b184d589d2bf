package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"ieg"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
)

// hostDevices lists what this host's engines can run on.
func hostDevices(*config.Effective) ([]node.Device, error) {
	free, err := memAvailable()
	if err != nil {
		return nil, err
	}
	d := node.Device{Free: free}
	d.Spec.ID, d.Spec.Type = "cpu", "CPU"
	d.Spec.Memory.VRAM = free
	return []node.Device{d}, nil
}

func memAvailable() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(s.Text(), "MemAvailable: %d kB", &kb); n == 1 && strings.HasPrefix(s.Text(), "MemAvailable") {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("%w: /proc/meminfo has no MemAvailable", ieg.ErrUnsupported)
}
