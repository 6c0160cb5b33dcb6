package fieldmanager

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// difference is what a write changed, as field sets: the fields that are new or have another value, and those that are
// gone. If a part is new or gone, so is all that it contains. Insert is called for the part itself and, through walk,
// for each part below it, because others may own parts of a value that is gone.
type difference struct{ changed, removed *fieldpath.Set }

// compare returns how now differs from was. Both are values of t, a kind's type.
func (t *typeNode) compare(was, now reflect.Value) (difference, error) {
	c := comparison{
		difference: difference{fieldpath.NewSet(), fieldpath.NewSet()},
		path:       make(fieldpath.Path, 0, 16),
	}
	err := c.value(t, was, now)
	return c.difference, err
}

// comparison is the visitor that gathers a difference.
type comparison struct {
	difference
	path fieldpath.Path // of the value that is compared
}

var _ visitor = (*comparison)(nil)

// part implements visitor.
func (c *comparison) part(t *typeNode, element fieldpath.PathElement, _ []byte, was, now reflect.Value) error {
	c.path = append(c.path, element)
	err := c.value(t, was, now)
	c.path = c.path[:len(c.path)-1]
	return err
}

// The order of the cases matters. A part that appears or disappears is in the set by its own path, and so are its
// parts. A part in both is in the set only if it has no parts of its own: otherwise a change of one field would give
// the writer the whole struct.
func (c *comparison) value(t *typeNode, was, now reflect.Value) error {
	was, now = deref(was), deref(now)
	some, err := t.walk(was, now, c)
	switch {
	case err != nil:
		return err
	case !was.IsValid():
		c.changed.Insert(c.path)
	case !now.IsValid():
		c.removed.Insert(c.path)
	case !some && !equal(was, now): // one part, or none in either: then null and empty differ
		c.changed.Insert(c.path)
	}
	return nil
}
