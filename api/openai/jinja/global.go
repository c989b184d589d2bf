package jinja

import (
	"fmt"
	"strings"
	"time"
)

// globals are the functions every template sees.
var globals = map[string]Value{
	"range":           &callable{"range", rangeFunc},
	"namespace":       &callable{"namespace", func(r *run, a args) Value { return &namespace{dictOf(r, a)} }},
	"dict":            &callable{"dict", func(r *run, a args) Value { return dictOf(r, a) }},
	"raise_exception": &callable{"raise_exception", raise},
	"strftime_now": &callable{"strftime_now", func(r *run, a args) Value {
		return strftime(r.now, a.str(0, "format", "%Y-%m-%d"))
	}},
	"joiner": &callable{"joiner", func(_ *run, a args) Value {
		sep, first := a.str(0, "sep", ", "), true
		return &callable{"joiner", func(*run, args) Value {
			if first {
				first = false
				return ""
			}
			return sep
		}}
	}},
	"cycler": &callable{"cycler", cycler},
}

func raise(r *run, a args) Value {
	panic(failure{fmt.Errorf("%w: %s", ErrRaised, r.text(a.at(0, "message", "")))})
}

func dictOf(r *run, a args) *Dict {
	d := NewDict()
	if src, ok := a.at(0, "", nil).(*Dict); ok {
		r.step(src.Len())
		for _, k := range src.keys {
			d.Set(k, src.vals[k])
		}
	}
	if a.kw != nil {
		for _, k := range a.kw.keys {
			d.Set(k, a.kw.vals[k])
		}
	}
	return d
}

func rangeFunc(r *run, a args) Value {
	from, to, step := int64(0), a.num(0, "stop", 0), int64(1)
	if len(a.pos) > 1 {
		from, to, step = to, a.num(1, "stop", 0), a.num(2, "step", 1)
	}
	if step == 0 {
		fail(ErrRender, "range step is zero")
	}
	l := &List{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		r.step(1)
		l.Items = append(l.Items, i)
	}
	return l
}

func cycler(_ *run, a args) Value {
	if len(a.pos) == 0 {
		fail(ErrRender, "cycler needs values")
	}
	i := 0
	d := NewDict("current", a.pos[0])
	d.Set("next", &callable{"next", func(*run, args) Value {
		v := a.pos[i]
		i = (i + 1) % len(a.pos)
		d.vals["current"] = a.pos[i]
		return v
	}})
	d.Set("reset", &callable{"reset", func(*run, args) Value {
		i = 0
		d.vals["current"] = a.pos[0]
		return nil
	}})
	return d
}

// strftime prints an instant with the verbs of C that have a fixed meaning;
// unknown ones stay as written.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := true
		if format[i] == '-' && i+1 < len(format) {
			pad = false
			i++
		}
		s, ok := verb(t, format[i])
		if !ok {
			b.WriteByte('%')
			s = format[i : i+1]
		}
		if !pad && len(s) > 1 {
			s = strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:]
		}
		b.WriteString(s)
	}
	return b.String()
}

func verb(t time.Time, c byte) (string, bool) {
	layouts := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03",
		'M': "04", 'S': "05", 'p': "PM", 'B': "January", 'b': "Jan", 'A': "Monday",
		'a': "Mon", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05",
		'R': "15:04", 'D': "01/02/06",
	}
	if l, ok := layouts[c]; ok {
		return t.Format(l), true
	}
	switch c {
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case '%':
		return "%", true
	}
	return "", false
}
