package model

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// LabelIndex finds, among many values that each have a selector, those whose selector may match given labels, without
// asking every selector. The zero value is ready. It is not safe for concurrent use.
type LabelIndex[T comparable] struct {
	pairs map[labelPair]map[T]bool
	keys  map[string]map[T]bool   // selectors that only ask for the key to be there
	rest  map[struct{}]map[T]bool // selectors that ask for no key
}

type labelPair struct{ key, value string }

// Add files v under one requirement of its selector: what lacks the label that this one asks for cannot match.
func (x *LabelIndex[T]) Add(sel labels.Selector, v T) { x.file(sel, v, true) }

// Remove takes out what was added with an equal selector.
func (x *LabelIndex[T]) Remove(sel labels.Selector, v T) { x.file(sel, v, false) }

func (x *LabelIndex[T]) file(sel labels.Selector, v T, in bool) {
	requirements, selectable := sel.Requirements()
	if !selectable {
		return // labels.Nothing matches nothing
	}
	exists := ""
	for i := range requirements {
		r := &requirements[i]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			for _, value := range r.ValuesUnsorted() {
				put(&x.pairs, labelPair{r.Key(), value}, v, in)
			}
			return
		case selection.Exists:
			exists = r.Key()
		}
	}
	if exists != "" {
		put(&x.keys, exists, v, in)
		return
	}
	put(&x.rest, struct{}{}, v, in)
}

func put[K, T comparable](m *map[K]map[T]bool, key K, v T, in bool) {
	if !in {
		delete((*m)[key], v)
		if len((*m)[key]) == 0 {
			delete(*m, key)
		}
		return
	}
	if *m == nil {
		*m = map[K]map[T]bool{}
	}
	if (*m)[key] == nil {
		(*m)[key] = map[T]bool{}
	}
	(*m)[key][v] = true
}

// Candidates calls yield once with every value whose selector may match the labels; the caller asks the selector
// itself.
func (x *LabelIndex[T]) Candidates(set labels.Set, yield func(T)) {
	for v := range x.rest[struct{}{}] {
		yield(v)
	}
	for key, value := range set {
		for v := range x.pairs[labelPair{key, value}] {
			yield(v)
		}
		for v := range x.keys[key] {
			yield(v)
		}
	}
}
