package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// setText sets a scalar from its text: the one way for YAML, environment and
// flags.
func setText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch text {
		case "true", "false":
			v.SetBool(text == "true")
		default:
			return strconv.ErrSyntax
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		v.SetFloat(f)
	default:
		panic(fmt.Sprintf("config: a field of kind %s has no text form", v.Kind()))
	}
	return nil
}

// wants names what a scalar takes.
func wants(v reflect.Value) string {
	if _, ok := v.Addr().Interface().(*Duration); ok {
		return "a time span such as 30s or 200ms"
	}
	if _, ok := v.Addr().Interface().(*Size); ok {
		return "a size such as 4GiB, 0 or auto"
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func fieldIndex(t reflect.Type, key string) (int, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == key {
			return i, true
		}
	}
	return 0, false
}

func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("yaml")
	}
	return keys
}

// suggest names the known key nearest to an unknown one, if one is near.
func suggest(key string, known []string) string {
	best, at := "", len(key)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(key), strings.ToLower(k)); d < at {
			best, at = k, d
		}
	}
	if best == "" && len(key) >= 4 {
		for _, k := range known {
			if strings.HasPrefix(k, key) {
				best = k
			}
		}
	}
	if best == "" {
		return "; known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the insertions, deletions and replacements between two
// words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// find returns the value at a path without list indices.
func (e *Effective) find(path string) (reflect.Value, bool) {
	v := reflect.ValueOf(&e.Config).Elem()
	for key := range strings.SplitSeq(path, ".") {
		if v.Kind() != reflect.Struct {
			return v, false
		}
		i, ok := fieldIndex(v.Type(), key)
		if !ok {
			return v, false
		}
		v = v.Field(i)
	}
	return v, true
}
