package fieldmanager

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// encoder is the visitor that writes the field set of a new object as JSON, without a fieldpath.Set: a new object has
// many fields, and the walk visits them in the order of the JSON. An encoder serves one object after the other, to
// reuse its buffers.
type encoder struct{ setWriter }

var _ visitor = (*encoder)(nil)

// encode returns the set of the fields that compare would find changed, nil if there are none. was is an empty object:
// a part of now is new, or a field of a struct that was always has.
func (e *encoder) encode(t *typeNode, was, now reflect.Value) (*metav1.FieldsV1, error) {
	e.reset()
	if _, err := t.walk(was, now, e); err != nil {
		return nil, err
	}
	e.finish()
	return e.fields(), nil
}

// part implements visitor. The cases are those of comparison.value.
func (e *encoder) part(t *typeNode, element fieldpath.PathElement, name []byte, was, now reflect.Value) (err error) {
	was, now = deref(was), deref(now)
	// The new object lacks something that even the empty object has.
	if !now.IsValid() {
		return errNeedsLibrary
	}
	if name == nil {
		if name, err = e.nameOf(element); err != nil {
			return err
		}
	}
	isNew := !was.IsValid()
	// A part that is new is in the set by its own path, in addition to what is below it.
	m := e.begin(name, isNew)
	some, err := t.walk(was, now, e)
	if err != nil {
		return err
	}
	e.end(m, isNew || !some && !equal(was, now))
	return nil
}
