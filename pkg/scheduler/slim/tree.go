package slim

import (
	"fmt"
	"reflect"
	"strings"
)

// tree has the fields of a type that are kept. A nil tree keeps everything.
type tree struct {
	// children are the fields of a struct that are kept, in part or as a whole; dropped are the others, by index.
	children []child
	dropped  []int
	// keys are the entries of a map that are kept.
	keys map[string]bool
}

type child struct {
	field int
	tree  *tree
}

// branch is a set of paths that share their beginning, by their next step. An empty branch ends a path.
type branch map[string]branch

// add puts a path into the branch. It replaces longer paths that the branch has: it includes them.
func (b branch) add(steps []string) {
	for _, s := range steps[:len(steps)-1] {
		next, known := b[s]
		if known && len(next) == 0 {
			return // a shorter path is there
		}
		if !known {
			next = branch{}
			b[s] = next
		}
		b = next
	}
	b[steps[len(steps)-1]] = branch{}
}

// split returns the steps of a path; the key in brackets is a step of its own.
func split(path string) []string {
	path, key, bracket := strings.Cut(path, "[")
	steps := strings.Split(path, ".")
	if bracket {
		steps = append(steps, strings.TrimSuffix(key, "]"))
	}
	return steps
}

// grow returns the tree of a type for the paths. An unknown path is an error.
func grow(t reflect.Type, paths []string) (*tree, error) {
	all := branch{}
	for _, p := range paths {
		// Each is checked by itself: in all of them a longer path goes unseen behind a shorter one.
		alone := branch{}
		alone.add(split(p))
		if _, err := shape(t, alone); err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		all.add(split(p))
	}
	return shape(t, all)
}

// shape returns the tree of a type for a branch.
func shape(t reflect.Type, b branch) (*tree, error) {
	used := map[string]bool{}
	out, err := limb(t, b, used)
	if err != nil {
		return nil, err
	}
	for name := range b {
		if !used[name] {
			return nil, fmt.Errorf("%s has no field %q", t, name)
		}
	}
	return out, nil
}

// limb does what shape does, for a type whose fields need not be all that the branch names: an inlined one has some of
// its parent's. It notes in used which steps name a field.
func limb(t reflect.Type, b branch, used map[string]bool) (*tree, error) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	out := &tree{}
	switch t.Kind() {
	case reflect.Map:
		out.keys = map[string]bool{}
		for key := range b {
			out.keys[key], used[key] = true, true
		}
		return out, nil
	case reflect.Struct:
	default:
		return out, nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			inner, err := limb(f.Type, b, used)
			if err != nil {
				return nil, err
			}
			out.children = append(out.children, child{i, inner})
			continue
		}
		next, kept := b[name]
		if !kept {
			out.dropped = append(out.dropped, i)
			continue
		}
		used[name] = true
		if len(next) == 0 {
			continue
		}
		inner, err := shape(f.Type, next)
		if err != nil {
			return nil, err
		}
		out.children = append(out.children, child{i, inner})
	}
	return out, nil
}

// visit calls drop with each field of v that is not kept. Entries of maps are deleted without it.
func (t *tree) visit(v reflect.Value, drop func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			t.visit(v.Elem(), drop)
		}
	case reflect.Slice:
		for i := range v.Len() {
			t.visit(v.Index(i), drop)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !t.keys[it.Key().String()] {
				v.SetMapIndex(it.Key(), reflect.Value{})
			}
		}
		if v.Len() == 0 {
			v.SetZero()
		}
	case reflect.Struct:
		for _, i := range t.dropped {
			drop(v.Field(i))
		}
		for _, c := range t.children {
			c.tree.visit(v.Field(c.field), drop)
		}
	}
}
