package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"
)

// fields is the top level of a request body. The getters return the default
// for fields that are missing or null, and keep the first error, which names
// the field; the caller asks for it once, at the end. Fields that nobody gets
// are accepted.
type fields struct {
	raw map[string]json.RawMessage
	err *apiError
}

func notJSON(format string, args ...any) *apiError {
	e := bad("", format, args...)
	e.Code = "invalid_json"
	return e
}

// parseFields reads a body that must be one JSON object.
func parseFields(body []byte) (*fields, error) {
	if err := checkDepth(body); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	f := &fields{}
	if err := d.Decode(&f.raw); err != nil {
		if _, is := mismatch(err); is != "" {
			return nil, notJSON("the body is not a JSON object: it is %s", is)
		}
		return nil, notJSON("the body is not a JSON object: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notJSON("there is more after the JSON object in the body")
	}
	if f.raw == nil {
		return nil, notJSON("the body is null; a JSON object is needed")
	}
	return f, nil
}

// checkDepth bounds the nesting before anything recursive reads the body.
func checkDepth(body []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxBodyDepth {
				return notJSON("the body is nested deeper than %d", MaxBodyDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// fail keeps the first error.
func (f *fields) fail(e *apiError) {
	if f.err == nil {
		f.err = e
	}
}

// check returns the first error.
func (f *fields) check() error {
	if f.err != nil {
		return f.err
	}
	return nil
}

// get returns a field's JSON, or nil if it is missing or null.
func (f *fields) get(name string) json.RawMessage {
	raw := f.raw[name]
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return raw
}

func (f *fields) has(name string) bool { return f.get(name) != nil }

// into decodes a field; want says in words what it must be.
func (f *fields) into(name string, v any, want string) bool {
	raw := f.get(name)
	if raw == nil {
		return false
	}
	err := json.Unmarshal(raw, v)
	if err == nil {
		return true
	}
	var inner *json.UnmarshalTypeError
	field, is := mismatch(err)
	switch {
	case !errors.As(err, &inner) || inner.Type == reflect.TypeOf(v).Elem():
		f.fail(bad(name, "%s must be %s, not %s", name, want, kindOf(raw)))
	case field != "":
		f.fail(bad(name, "%s must be %s; a %s in it is %s", name, want, field, is))
	default:
		f.fail(bad(name, "%s must be %s; in it is %s", name, want, is))
	}
	return false
}

// mismatch puts a value of the wrong type in words: the path to it, and what
// it is and should be. Both are empty for other errors, whose own words do.
func mismatch(err error) (field, is string) {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return "", ""
	}
	value, digits, _ := strings.Cut(e.Value, " ")
	found := map[string]string{"array": "a list", "object": "an object", "string": "a string", "bool": "a boolean", "number": "a number"}[value]
	switch {
	case found == "":
		found = "something else"
	case digits != "":
		found = "the number " + utf8Bound(digits, 32)
	}
	return e.Field, found + " where " + wanted(e.Type) + " is wanted"
}

// wanted names the JSON that a Go type is read from.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); k {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		if k >= reflect.Int && k <= reflect.Uint64 {
			return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
		}
		return "something else"
	}
}

// kindOf names what a JSON text is.
func kindOf(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "the number " + string(raw[:min(len(raw), 32)])
}

func (f *fields) boolean(name string, def bool) bool {
	f.into(name, &def, "a boolean")
	return def
}

// text is a string of at most limit bytes.
func (f *fields) text(name string, limit int) string {
	var s string
	f.into(name, &s, "a string")
	if len(s) > limit {
		f.fail(bad(name, "%s has %d bytes, the limit is %d", name, len(s), limit))
		return ""
	}
	return s
}

// oneOf is a string out of a list.
func (f *fields) oneOf(name, def string, values ...string) string {
	s := f.text(name, MaxIDBytes)
	if s == "" {
		return def
	}
	for _, v := range values {
		if s == v {
			return s
		}
	}
	f.fail(bad(name, "%s is %q; it can be %s", name, s, strings.Join(values, ", ")))
	return def
}

// whole is a whole number from low to high. 1.0 counts as one.
func (f *fields) whole(name string, low, high, def int64) int64 {
	raw := f.get(name)
	if raw == nil {
		return def
	}
	var n int64
	if err := json.Unmarshal(raw, &n); err != nil {
		var x float64
		if json.Unmarshal(raw, &x) != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			f.fail(bad(name, "%s must be a whole number, not %s", name, kindOf(raw)))
			return def
		}
		n = int64(x)
	}
	if n < low || n > high {
		f.fail(bad(name, "%s is %d; it can be %d to %d", name, n, low, high))
		return def
	}
	return n
}

// number is a number from low to high.
func (f *fields) number(name string, low, high, def float64) float32 {
	x := def
	if f.into(name, &x, "a number") && (x < low || x > high) {
		f.fail(bad(name, "%s is %g; it can be %g to %g", name, x, low, high))
		return float32(def)
	}
	return float32(x)
}

// oneOrList decodes a field that is one value or a list of them.
func oneOrList[T any](f *fields, name, want string, limit int) []T {
	raw := f.get(name)
	if raw == nil {
		return nil
	}
	var list []T
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		if !f.into(name, &list, want) {
			return nil
		}
	} else {
		var one T
		if !f.into(name, &one, want) {
			return nil
		}
		list = []T{one}
	}
	if len(list) > limit {
		f.fail(bad(name, "%s has %d entries, the limit is %d", name, len(list), limit))
		return nil
	}
	return list
}

// object decodes a field that is an object, without its keys' meaning.
func (f *fields) object(name string, limit int) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	f.into(name, &m, "an object")
	if len(m) > limit {
		f.fail(bad(name, "%s has %d entries, the limit is %d", name, len(m), limit))
		return nil
	}
	return m
}

// sub opens a nested object; its errors go to f with the path's name.
func (f *fields) sub(name string) *fields {
	return &fields{raw: f.object(name, math.MaxInt)}
}

// adopt takes over the error of a nested object.
func (f *fields) adopt(name string, sub *fields) {
	if sub.err == nil {
		return
	}
	e := *sub.err
	e.Param = name + "." + e.Param
	f.fail(&e)
}

// refuse fails if a field is set that this node has no meaning for.
func (f *fields) refuse(name, why string) {
	if !f.has(name) {
		return
	}
	switch string(f.get(name)) {
	case "false", "0", `""`, "[]", "{}":
		return
	}
	f.fail(unsupported(name, "%s is not supported here: %s", name, why))
}

// utf8Bound cuts s to at most n bytes without breaking a character.
func utf8Bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// conflict is a 400 for two fields that exclude each other.
func conflict(a, b string) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: a,
		Message: fmt.Sprintf("%s and %s can't be used together", a, b)}
}
