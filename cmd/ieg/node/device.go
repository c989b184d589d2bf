package node

import (
	"context"
	"fmt"
	"strings"

	"ieg/api/admin"
	"ieg/kernel"
)

// AddDevices adds devices, or completes ones with the same id. A device that
// is complete keeps what is known of it.
func (n *Node) AddDevices(ds []Device) {
	n.mu.Lock()
	before := len(n.devs)
	n.devs = Merge(n.devs, ds)
	added := n.devs[before:]
	n.mu.Unlock()
	for _, d := range added {
		n.loop.Post(kernel.DeviceUp{Spec: d.Spec, Free: d.Free})
	}
}

// Probed tells that no further device will be found.
func (n *Node) Probed() { close(n.probed) }

// Merge adds to a list the devices whose ids it doesn't hold. One that it
// holds is known better already: by its driver, not through a library.
func Merge(list, more []Device) []Device {
	list = list[:len(list):len(list)]
	for _, d := range more {
		known := false
		for _, o := range list {
			known = known || o.is(d.Spec.ID)
		}
		if !known && len(list) < DevicesMax {
			list = append(list, d)
		}
	}
	return list
}

// is tells whether a device has a name: its id, or its name in the library.
func (d Device) is(name string) bool {
	return strings.EqualFold(d.Spec.ID, name) || d.Library != "" && strings.EqualFold(d.Library, name)
}

// deviceFor picks the device of a model: the named one, else the first GPU
// that can be used, else the first device. For a name that is not known yet it
// waits until all devices are.
func (n *Node) deviceFor(ctx context.Context, name string) (Device, error) {
	if name == "" {
		return n.defaultDevice(), nil
	}
	if d, ok := n.device(name); ok {
		return d, nil
	}
	select {
	case <-n.probed:
	case <-ctx.Done():
		return Device{}, ctx.Err()
	}
	if d, ok := n.device(name); ok {
		return d, nil
	}
	var ids []string
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.devs {
		ids = append(ids, d.Spec.ID)
	}
	return Device{}, fmt.Errorf("%w: there is no device %q, only %s; see ieg devices", admin.ErrInvalid, name, strings.Join(ids, ", "))
}

func (n *Node) device(name string) (Device, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.devs {
		if d.is(name) {
			return d, true
		}
	}
	return Device{}, false
}

// defaultDevice considers what the host's drivers told at the start only, so
// that it does not depend on how long a probe takes.
func (n *Node) defaultDevice() Device {
	for _, d := range n.cfg.Devices {
		if d.Spec.Type == "GPU" && len(d.Notes) == 0 {
			return d
		}
	}
	return n.cfg.Devices[0]
}
