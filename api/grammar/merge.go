package grammar

import (
	"slices"
	"strconv"
)

// absorb adds the keywords of s to the conjunction m.
func (c *compiler) absorb(m *merged, s *value, at string, depth int) error {
	if err := c.within(at, 1+len(s.members)); err != nil {
		return err
	}
	if depth > MaxSchemaDepth {
		return errAt(at, "schemas nest deeper than %d", MaxSchemaDepth)
	}
	if s.kind == vBool && s.truth {
		return nil
	}
	if s.kind != vObject {
		return errAt(at, "only objects and true can be merged")
	}
	m.sources++
	source := m.sources
	for _, kw := range s.members {
		if ignored[kw.key] {
			continue
		}
		if err := c.absorbKeyword(m, keyword{kw.val, child(at, kw.key)}, kw.key, source, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) absorbKeyword(m *merged, kw keyword, name string, source, depth int) error {
	switch name {
	case "$ref":
		return c.absorbReference(m, kw, depth)
	case "allOf":
		if kw.val.kind != vArray || len(kw.val.items) == 0 {
			return errAt(kw.at, "must be a list of schemas")
		}
		for i, s := range kw.val.items {
			if err := c.absorb(m, s, kw.at+"/"+strconv.Itoa(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	case "anyOf", "oneOf":
		if m.alts != nil {
			return errAt(kw.at, "can't be combined with %s", m.alts.at)
		}
		m.alts = &kw
		return nil
	case "type":
		return m.intersect(kw)
	case "properties":
		return m.addProperties(kw, source)
	case "required":
		return m.addRequired(kw)
	case "uniqueItems":
		if kw.val.kind == vBool && !kw.val.truth {
			return nil
		}
	}
	if _, ok := plain[name]; !ok {
		return errAt(kw.at, "the keyword %q is not supported", name)
	}
	if old, ok := m.kw[name]; ok && !old.val.equal(kw.val) {
		return errAt(kw.at, "differs from %s; such schemas can't be merged", old.at)
	}
	m.kw[name], m.from[name] = kw, source
	return nil
}

// absorbReference takes in the target of a $ref that has neighbours.
func (c *compiler) absorbReference(m *merged, kw keyword, depth int) error {
	target, pointer, err := c.resolve(kw.val, kw.at)
	if err != nil {
		return err
	}
	if slices.Contains(m.stack, pointer) {
		return errAt(kw.at, "refers to itself inside a merge")
	}
	m.stack = append(m.stack, pointer)
	err = c.absorb(m, target, pointer, depth+1)
	m.stack = m.stack[:len(m.stack)-1]
	return err
}

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// intersect narrows the types; an integer is a number.
func (m *merged) intersect(kw keyword) error {
	var names []string
	list := kw.val.items
	if kw.val.kind == vString {
		list = []*value{kw.val}
	}
	for _, v := range list {
		if v.kind != vString || !slices.Contains(typeNames, v.text) {
			return errAt(kw.at, "must be one of %v or a list of them", typeNames)
		}
		if !slices.Contains(names, v.text) {
			names = append(names, v.text)
		}
	}
	if len(names) == 0 {
		return errAt(kw.at, "must be one of %v or a list of them", typeNames)
	}
	if m.types == nil {
		m.types = names
		return nil
	}
	var both []string
	for _, name := range names {
		switch {
		case slices.Contains(m.types, name), name == "integer" && slices.Contains(m.types, "number"):
			both = append(both, name)
		case name == "number" && slices.Contains(m.types, "integer"):
			both = append(both, "integer")
		}
	}
	if len(both) == 0 {
		return errAt(kw.at, "no type is left of %v and %v", m.types, names)
	}
	m.types = both
	return nil
}

func (m *merged) addProperties(kw keyword, source int) error {
	if kw.val.kind != vObject {
		return errAt(kw.at, "must be an object of schemas")
	}
	index := make(map[string]*property, len(m.props))
	for i := range m.props {
		index[m.props[i].key] = &m.props[i]
	}
	for _, p := range kw.val.members {
		at := child(kw.at, p.key)
		if old := index[p.key]; old != nil {
			if !old.schema.equal(p.val) {
				return errAt(at, "differs from %s; such properties can't be merged", old.at)
			}
			continue
		}
		m.props = append(m.props, property{key: p.key, schema: p.val, at: at, source: source})
	}
	if len(m.props) > MaxProperties {
		return errAt(kw.at, "more than %d properties", MaxProperties)
	}
	m.kw["properties"] = kw
	return nil
}

func (m *merged) addRequired(kw keyword) error {
	if kw.val.kind != vArray {
		return errAt(kw.at, "must be a list of names")
	}
	for i, v := range kw.val.items {
		at := kw.at + "/" + strconv.Itoa(i)
		if v.kind != vString {
			return errAt(at, "must be a name")
		}
		m.required = append(m.required, keyword{v, at})
	}
	if len(m.required) > MaxProperties {
		return errAt(kw.at, "more than %d names", MaxProperties)
	}
	m.kw["required"] = kw
	return nil
}
