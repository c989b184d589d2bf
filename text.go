package ieg

import "fmt"

// The names of enumerations can be read back, so that what a node prints can
// be taken in by its clients and by engines' parents.

func nameIndex(what string, names []string, text []byte) (uint8, error) {
	for i, n := range names {
		if n == string(text) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%w: %q is no %s", ErrProtocol, text, what)
}

// UnmarshalText reads the name of a node type.
func (t *NodeType) UnmarshalText(b []byte) error {
	i, err := nameIndex("node type", nodeTypeNames[:], b)
	*t = NodeType(i)
	return err
}

// UnmarshalText reads the name of a stage.
func (s *Stage) UnmarshalText(b []byte) error {
	i, err := nameIndex("stage", stageNames[:], b)
	*s = Stage(i)
	return err
}

// UnmarshalText reads the name of a node state.
func (s *NodeState) UnmarshalText(b []byte) error {
	i, err := nameIndex("node state", nodeStateNames[:], b)
	*s = NodeState(i)
	return err
}

// UnmarshalText reads "unified" or "streams".
func (l *Layout) UnmarshalText(b []byte) error {
	i, err := nameIndex("layout", []string{Unified.String(), Streams.String()}, b)
	*l = Layout(i)
	return err
}
