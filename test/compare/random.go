package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// random makes requests.
type random struct{ *rand.Rand }

// strange are values that may stand anywhere.
var strange = []string{`null`, `""`, `-1`, `0`, `1`, `1.5`, `9223372036854775808`, `true`, `[]`, `{}`, `["a"]`,
	`[null]`, `{"a":"b"}`, `{"a":null}`, `"A_b"`, `"a.b"`, `"*"`, `" "`, `"é\u0000"`, `"5"`, `"50%"`,
	`"self.x"`, `"https://a.example.com"`, `"2026-13-01T00:00:00Z"`, `{"name":"a"}`, `[{"name":"a"},{"name":"a"}]`,
	`[1,"a",{}]`}

func pick[T any](r random, from []T) T { return from[r.IntN(len(from))] }

// value is a strange value, or a long one.
func (r random) value() any {
	if r.IntN(30) == 0 {
		return strings.Repeat("x", 300)
	}
	return json.RawMessage(pick(r, strange))
}

// place is a key of a map, or an index of a list.
type place struct {
	m     map[string]any
	key   string
	list  []any
	index int
	// pointer is its JSON pointer.
	pointer string
}

func (p place) get() any {
	if p.m != nil {
		return p.m[p.key]
	}
	return p.list[p.index]
}

func (p place) set(v any) {
	if p.m != nil {
		p.m[p.key] = v
	} else {
		p.list[p.index] = v
	}
}

// places are all of a document's, in a fixed order.
func places(v any, pointer string, out []place) []place {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			p := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			out = places(v[key], p, append(out, place{m: v, key: key, pointer: p}))
		}
	case []any:
		for i := range v {
			p := fmt.Sprintf("%s/%d", pointer, i)
			out = places(v[i], p, append(out, place{list: v, index: i, pointer: p}))
		}
	}
	return out
}

// change makes up to n changes to a document.
func (r random) change(doc map[string]any, n int) {
	for range n {
		all := places(doc, "", nil)
		if len(all) == 0 {
			return
		}
		p := pick(r, all)
		if p.m != nil && (p.key == "apiVersion" || p.key == "kind") && r.IntN(4) > 0 {
			continue
		}
		v := p.get()
		switch list, isList := v.([]any); {
		case r.IntN(10) < 4:
			p.set(r.value())
		case p.m != nil && r.IntN(3) == 0:
			delete(p.m, p.key)
		case p.m != nil && r.IntN(4) == 0:
			p.m[fmt.Sprintf("zz%d", r.IntN(3))] = r.value()
		case isList && len(list) > 0:
			switch r.IntN(3) {
			case 0:
				p.set(append(slices.Clone(list), copied(pick(r, list))))
			case 1:
				i := r.IntN(len(list))
				p.set(slices.Delete(slices.Clone(list), i, i+1))
			default:
				list = slices.Clone(list)
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				p.set(list)
			}
		default:
			switch v := v.(type) {
			case string:
				p.set(v + pick(r, []string{"x", " ", ".", "/", `"`, "-", "é", "0"}))
			case float64:
				p.set(v + pick(r, []float64{1, -1, 0.5, 100, 1e10}))
			case bool:
				p.set(!v)
			default: // something from elsewhere in the document
				p.set(copied(pick(r, all).get()))
			}
		}
	}
}

// part leaves most of a document out.
func (r random) part(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, key := range sortedKeys(m) {
		switch {
		case key == "apiVersion" || key == "kind" || key == "name":
		case r.IntN(2) == 0:
			delete(m, key)
		default:
			m[key] = r.part(m[key])
		}
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// operations are a JSON patch of some places of a document.
func (r random) operations(doc map[string]any) any {
	all := places(doc, "", nil)
	var out []any
	for range 1 + r.IntN(3) {
		p := pick(r, all)
		op := map[string]any{"op": pick(r, []string{"add", "replace", "remove", "test", "copy", "move", "nothing"}),
			"path": p.pointer}
		if r.IntN(8) == 0 {
			op["path"] = p.pointer + pick(r, []string{"/x", "/-", "/0", "/", "~", ""})
		}
		switch op["op"] {
		case "copy", "move":
			op["from"] = pick(r, all).pointer
		case "test":
			op["value"] = copied(p.get())
		case "remove":
		default:
			op["value"] = r.value()
		}
		if r.IntN(20) == 0 {
			delete(op, pick(r, []string{"op", "path", "value", "from"}))
		}
		out = append(out, op)
	}
	return out
}

// copied is a document's copy.
func copied(v any) any {
	raw, _ := json.Marshal(v) // it was read from JSON
	var out any
	_ = json.Unmarshal(raw, &out) // as above
	return out
}
