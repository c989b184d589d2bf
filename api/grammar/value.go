package grammar

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

type valueKind uint8

const (
	vNull valueKind = iota
	vBool
	vNumber
	vString
	vArray
	vObject
)

// value is JSON with the order of its keys.
type value struct {
	kind    valueKind
	truth   bool
	text    string // of a string; literal of a number
	items   []*value
	members []member
}

type member struct {
	key string
	val *value
}

func (v *value) get(key string) *value {
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].val
		}
	}
	return nil
}

// parseValue reads one JSON value within the limits.
func parseValue(data []byte, pointer string) (*value, error) {
	if len(data) > MaxSchemaBytes {
		return nil, errAt(pointer, "longer than %d bytes", MaxSchemaBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := readValue(dec, pointer, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errAt(pointer, "text follows the JSON value")
	}
	return v, nil
}

func readValue(dec *json.Decoder, pointer string, depth int) (*value, error) {
	if depth > MaxSchemaDepth {
		return nil, errAt(pointer, "nested deeper than %d", MaxSchemaDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, errAt(pointer, "no valid JSON: %v", err)
	}
	switch t := tok.(type) {
	case nil:
		return &value{kind: vNull}, nil
	case bool:
		return &value{kind: vBool, truth: t}, nil
	case json.Number:
		return &value{kind: vNumber, text: string(t)}, nil
	case string:
		return &value{kind: vString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return readArray(dec, pointer, depth)
		}
		return readObject(dec, pointer, depth)
	}
	return nil, errAt(pointer, "no valid JSON")
}

func readArray(dec *json.Decoder, pointer string, depth int) (*value, error) {
	v := &value{kind: vArray}
	for dec.More() {
		item, err := readValue(dec, pointer+"/"+strconv.Itoa(len(v.items)), depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	if _, err := dec.Token(); err != nil {
		return nil, errAt(pointer, "no valid JSON: %v", err)
	}
	return v, nil
}

func readObject(dec *json.Decoder, pointer string, depth int) (*value, error) {
	v := &value{kind: vObject}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, errAt(pointer, "no valid JSON: %v", err)
		}
		key, _ := tok.(string)
		if len(key) > MaxKeyBytes {
			return nil, errAt(pointer, "a key is longer than %d bytes", MaxKeyBytes)
		}
		at := child(pointer, key)
		if seen[key] {
			return nil, errAt(at, "given twice")
		}
		seen[key] = true
		val, err := readValue(dec, at, depth+1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{key, val})
	}
	if _, err := dec.Token(); err != nil {
		return nil, errAt(pointer, "no valid JSON: %v", err)
	}
	return v, nil
}

// child is the pointer of a key (RFC 6901).
func child(pointer, key string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// equal compares as JSON schema does: numbers by value where that is cheap,
// objects without order.
func (v *value) equal(o *value) bool {
	if v.kind != o.kind {
		return false
	}
	switch v.kind {
	case vBool:
		return v.truth == o.truth
	case vNumber:
		a, okA := parseRat(v.text)
		b, okB := parseRat(o.text)
		if okA && okB {
			return a.Cmp(b) == 0
		}
		return v.text == o.text
	case vString:
		return v.text == o.text
	case vArray:
		if len(v.items) != len(o.items) {
			return false
		}
		for i := range v.items {
			if !v.items[i].equal(o.items[i]) {
				return false
			}
		}
	case vObject:
		if len(v.members) != len(o.members) {
			return false
		}
		for _, m := range v.members {
			if other := o.get(m.key); other == nil || !m.val.equal(other) {
				return false
			}
		}
	}
	return true
}

// typeName is the JSON schema type of a value; integers are told apart.
func (v *value) typeName() string {
	switch v.kind {
	case vNull:
		return "null"
	case vBool:
		return "boolean"
	case vNumber:
		if r, ok := parseRat(v.text); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	case vString:
		return "string"
	case vArray:
		return "array"
	}
	return "object"
}
