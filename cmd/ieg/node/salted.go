package node

import (
	"ieg"
	"ieg/memory/kv"
)

// meet remembers which kind of KV the texts of a tenant are.
func (n *Node) meet(kind, tenant string) {
	if tenant == "" {
		return // known without
	}
	root := kv.Root(kind, tenant)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.salted) >= SaltedMax {
		clear(n.salted) // the next requests bring those that are in use
	}
	n.salted[root] = kind
}

// rootNames are the loaded models by the roots of their texts, as far as these
// are known.
func (n *Node) rootNames() map[ieg.BlockHash]string {
	names, models := map[ieg.BlockHash]string{}, map[string]string{}
	for _, info := range n.kinds() {
		if info.KVName != "" {
			models[info.KVName] = info.Model.Name
			names[kv.Root(info.KVName, "")] = info.Model.Name
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for root, kind := range n.salted {
		if name := models[kind]; name != "" {
			names[root] = name
		}
	}
	return names
}
