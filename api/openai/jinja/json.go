package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// FromJSON reads one JSON value, keeping the order of keys. Whole numbers
// that fit become int64, others float64. edit, if not nil, is applied to each
// string, keys included.
func FromJSON(text []byte, edit func(string) string) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decodeJSON(d, edit, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: more than one JSON value", ErrRender)
	}
	return v, nil
}

func decodeJSON(d *json.Decoder, edit func(string) string, depth int) (Value, error) {
	if depth > JSONDepth {
		return nil, fmt.Errorf("%w: JSON nested deeper than %d", ErrLimit, JSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrRender, err)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return decodeList(d, edit, depth)
		}
		return decodeDict(d, edit, depth)
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i, nil
		}
		f, err := t.Float64()
		if err != nil || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%w: number %s is out of range", ErrRender, t)
		}
		return f, nil
	case string:
		if edit != nil {
			return edit(t), nil
		}
		return t, nil
	}
	return t, nil // bool or nil
}

func decodeList(d *json.Decoder, edit func(string) string, depth int) (Value, error) {
	l := &List{}
	for d.More() {
		v, err := decodeJSON(d, edit, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func decodeDict(d *json.Decoder, edit func(string) string, depth int) (Value, error) {
	m := NewDict()
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrRender, err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("%w: key %v is no string", ErrRender, t)
		}
		if edit != nil {
			key = edit(key)
		}
		v, err := decodeJSON(d, edit, depth+1)
		if err != nil {
			return nil, err
		}
		m.Set(key, v)
	}
	_, err := d.Token()
	return m, err
}

// ToJSON writes a value made by FromJSON as the filter tojson does.
func ToJSON(v Value) (text string, err error) {
	defer caught(&err)
	return (&run{}).toJSON(v, args{}), nil
}

// dump holds the settings of one tojson.
type dump struct {
	r          *run
	b          strings.Builder
	item, key  string // separators
	indent     string
	ascii      bool
	sortedKeys bool
}

// toJSON is Python's json.dumps with the options of the tojson filter.
func (r *run) toJSON(v Value, a args) string {
	d := &dump{r: r, item: ", ", key: ": "}
	switch in := a.at(1, "indent", nil).(type) {
	case int64:
		if in < 0 || in > 64 {
			fail(ErrLimit, "indent %d", in)
		}
		d.indent, d.item = "\n"+strings.Repeat(" ", int(in)), ","
	case string:
		d.indent, d.item = "\n"+in, ","
	}
	if s, ok := a.at(-1, "separators", nil).(*List); ok && len(s.Items) == 2 {
		d.item, d.key = r.text(s.Items[0]), r.text(s.Items[1])
	}
	d.ascii = truthy(a.at(-1, "ensure_ascii", false))
	d.sortedKeys = truthy(a.at(-1, "sort_keys", false))
	d.value(v, 0)
	r.made(d.b.Len())
	return d.b.String()
}

func (d *dump) value(v Value, depth int) {
	d.r.step(1)
	if depth > JSONDepth {
		fail(ErrLimit, "value nested deeper than %d", JSONDepth)
	}
	if d.b.Len() > OutputBytes {
		fail(ErrLimit, "JSON longer than %d bytes", OutputBytes)
	}
	switch v := v.(type) {
	case nil:
		d.b.WriteString("null")
	case bool:
		if v {
			d.b.WriteString("true")
		} else {
			d.b.WriteString("false")
		}
	case int64:
		fmt.Fprintf(&d.b, "%d", v)
	case float64:
		d.b.WriteString(formatFloat(v))
	case string:
		d.str(v)
	case *List:
		d.list(v, depth)
	case *Dict:
		d.dict(v, depth)
	default:
		fail(ErrRender, "%s can't be written as JSON", typeName(v))
	}
}

func (d *dump) list(v *List, depth int) {
	if len(v.Items) == 0 {
		d.b.WriteString("[]")
		return
	}
	d.b.WriteByte('[')
	for i, it := range v.Items {
		if i > 0 {
			d.b.WriteString(d.item)
		}
		d.newline(depth + 1)
		d.value(it, depth+1)
	}
	d.newline(depth)
	d.b.WriteByte(']')
}

func (d *dump) dict(v *Dict, depth int) {
	if len(v.keys) == 0 {
		d.b.WriteString("{}")
		return
	}
	keys := v.keys
	if d.sortedKeys {
		keys = slices.Sorted(slices.Values(keys))
	}
	d.b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			d.b.WriteString(d.item)
		}
		d.newline(depth + 1)
		d.str(k)
		d.b.WriteString(d.key)
		d.value(v.vals[k], depth+1)
	}
	d.newline(depth)
	d.b.WriteByte('}')
}

func (d *dump) newline(depth int) {
	if d.indent == "" {
		return
	}
	d.b.WriteByte('\n')
	for range depth {
		d.b.WriteString(d.indent[1:])
	}
}

func (d *dump) str(s string) {
	d.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			d.b.WriteByte('\\')
			d.b.WriteRune(c)
		case c == '\n':
			d.b.WriteString(`\n`)
		case c == '\r':
			d.b.WriteString(`\r`)
		case c == '\t':
			d.b.WriteString(`\t`)
		case c == '\b':
			d.b.WriteString(`\b`)
		case c == '\f':
			d.b.WriteString(`\f`)
		case c < 0x20:
			fmt.Fprintf(&d.b, `\u%04x`, c)
		case d.ascii && c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&d.b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		case d.ascii && c > 0x7e:
			fmt.Fprintf(&d.b, `\u%04x`, c)
		default:
			d.b.WriteRune(c)
		}
	}
	d.b.WriteByte('"')
}
