package spec

import (
	"errors"
	"fmt"
	"strings"

	"ieg"
	"ieg/kernel/graph"

	"github.com/goccy/go-yaml/ast"
)

// The keys id, type, stage and priority of a Node Spec depend on each other
// and may come in any order: type names a node type or, for short, a stage;
// the stage follows from type and id where it is not given, the priority from
// the type. What was not read is marked and settled at the end.
const (
	noType  = ieg.NodeType(255)
	noStage = ieg.Stage(255)
)

type nodeType struct{ s *ieg.NodeSpec }

func (v nodeType) read(r *reader, path string, n ast.Node) {
	text, ok := r.text(path, n)
	if !ok {
		return
	}
	var t ieg.NodeType
	var stage ieg.Stage
	switch {
	case t.UnmarshalText([]byte(text)) == nil:
		v.s.Type = t
	case stage.UnmarshalText([]byte(text)) == nil:
		v.s.Stage, v.s.Type = stage, stage.Type()
	default:
		_, err := oneOf(text, append(typeNames(), stageNames()...))
		r.fail(n, path, err.Error(), "")
	}
}

func (v nodeType) write(p *printer, key string) bool {
	p.line(key, v.s.Type.String())
	return true
}

type nodeStage struct{ s *ieg.NodeSpec }

func (v nodeStage) read(r *reader, path string, n ast.Node) {
	text, ok := r.text(path, n)
	if !ok {
		return
	}
	if v.s.Stage.UnmarshalText([]byte(text)) != nil {
		_, err := oneOf(text, stageNames())
		r.fail(n, path, err.Error(), "")
	}
}

func (v nodeStage) write(p *printer, key string) bool {
	p.line(key, v.s.Stage.String())
	return true
}

// preferred is the opposite of required, as a key of its own.
type preferred struct{ s *ieg.NodeSpec }

func (v preferred) read(r *reader, path string, n ast.Node) {
	var yes bool
	before := len(r.errs)
	Bool("", &yes).value.read(r, path, n)
	switch {
	case len(r.errs) > before:
	case yes && v.s.Affinity.Required:
		r.fail(n, path, "an affinity is required or preferred, not both", "")
	case !yes:
		v.s.Affinity.Required = true
	}
}

func (v preferred) write(p *printer, key string) bool {
	if v.s.Affinity.KVLocation == "" || v.s.Affinity.Required {
		return false
	}
	p.line(key, "true")
	return true
}

// finishNode settles what a Node Spec leaves open, and checks the rest.
func finishNode(s *ieg.NodeSpec) error {
	switch {
	case s.ID == "":
		return errors.New("a node needs an id")
	case s.Type == noType && s.Stage == noStage:
		return fmt.Errorf("a node needs a type: one of %s, or a stage", strings.Join(typeNames(), ", "))
	case s.Type == noType:
		s.Type = s.Stage.Type()
	case s.Stage == noStage:
		s.Stage = stageOf(s.Type, s.ID)
	}
	switch {
	case s.Stage.Type() != s.Type:
		return fmt.Errorf("stage %v is of type %v, not %v", s.Stage, s.Stage.Type(), s.Type)
	case s.Parallel.Degree > 1 && s.Parallel.Strategy == "none":
		return fmt.Errorf("degree %d needs a strategy: tensor_parallel or pipeline", s.Parallel.Degree)
	case s.Affinity.Required && s.Affinity.KVLocation == "":
		return errors.New("a required affinity needs a kv_cache_location")
	}
	if s.Priority == "" {
		s.Priority = graph.Priority(s.Type)
	}
	return nil
}

// stageOf is the stage of a type that the id begins with, or the type's first
// (of control nodes: join).
func stageOf(t ieg.NodeType, id string) ieg.Stage {
	first := noStage
	for s := ieg.StageTokenize; s <= ieg.StageOutput; s++ {
		switch {
		case s.Type() != t:
		case strings.HasPrefix(id, s.String()):
			return s
		case first == noStage && s != ieg.StageTokenize:
			first = s
		}
	}
	return first
}

func typeNames() []string {
	var out []string
	for t := ieg.ComputeNode; t <= ieg.ControlNode; t++ {
		out = append(out, t.String())
	}
	return out
}

func stageNames() []string {
	var out []string
	for s := ieg.StageTokenize; s <= ieg.StageOutput; s++ {
		out = append(out, s.String())
	}
	return out
}

// ParseNode reads one Node Spec, bare or under the key node.
func ParseNode(text []byte) (ieg.NodeSpec, error) {
	var list []ieg.NodeSpec
	if err := readOne(text, Items("", "node", &list, NodeFields)); err != nil {
		return ieg.NodeSpec{}, err
	}
	if err := finishNode(&list[0]); err != nil {
		return ieg.NodeSpec{}, &Error{Line: 1, Column: 1, Msg: err.Error()}
	}
	return list[0], nil
}

// FormatNode prints one Node Spec under the key node.
func FormatNode(s ieg.NodeSpec) string { return Print(Group("node", NodeFields(&s)...)) }

// ParseDevice reads one Resource Spec, bare or under the key device.
func ParseDevice(text []byte) (ieg.ResourceSpec, error) {
	var list []ieg.ResourceSpec
	if err := readOne(text, Items("", "device", &list, DeviceFields)); err != nil {
		return ieg.ResourceSpec{}, err
	}
	if list[0].ID == "" {
		return ieg.ResourceSpec{}, &Error{Line: 1, Column: 1, Path: "device", Msg: "a device needs an id"}
	}
	return list[0], nil
}

// FormatDevice prints one Resource Spec under the key device.
func FormatDevice(s ieg.ResourceSpec) string { return Print(Group("device", DeviceFields(&s)...)) }

// readOne reads a document as the only item of a list.
func readOne(text []byte, list Field) error {
	body, err := parse(text)
	if err != nil {
		return err
	}
	if body == nil {
		return &Error{Line: 1, Column: 1, Msg: "the text is empty"}
	}
	r := &reader{}
	list.value.read(r, "", &ast.SequenceNode{BaseNode: &ast.BaseNode{}, Values: []ast.Node{body}})
	for _, err := range r.errs {
		if e := (*Error)(nil); errors.As(err, &e) {
			e.Path = strings.TrimPrefix(strings.TrimPrefix(e.Path, "[0]"), ".")
		}
	}
	return errors.Join(r.errs...)
}
