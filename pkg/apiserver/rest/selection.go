package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
)

// selection is the filter of a request's selectors, nil if everything matches. It reads the facts of an item (labels
// and indexed fields), so that no object is decoded for it.
type selection func(*storage.Item) bool

// choice is the selection of one request.
type choice struct {
	filter selection
	// err is why an object could not be converted to the version whose fields are selected by: what was selected may
	// lack some.
	err error
	// passes tells that an object which cannot be converted passes the filter: a watch hears of err with its event. A
	// deletion must not take it.
	passes bool
	// repr is what objects are chosen in, if they must be converted for that; else nil.
	repr *representation
}

// choose builds the request's choice. name, if not "", is the one object that a deprecated watch path names. If objects
// must be converted to be selected, the request's deadline bounds the webhook calls.
func (x *exchange) choose(opts *metav1.ListOptions, name string) (*choice, error) {
	filter, err := selectionOf(x.res.Route, opts, name)
	if err != nil || filter == nil || x.res.Version.Fields == nil || !beyondMetadata(opts.FieldSelector) {
		return &choice{filter: filter}, err
	}
	ctx, c := x.r.Context(), &choice{repr: x.res.full}
	c.filter = func(i *storage.Item) bool {
		if c.err != nil {
			return c.passes // one answer of the webhook is enough to know that there is none for the request
		}
		var served *storage.Item
		if served, c.err = c.repr.of(ctx, i); c.err != nil {
			return c.passes
		}
		return filter(served)
	}
	return c, nil
}

// ready converts all existing objects in pages, if objects must be converted to be selected. A webhook is then called
// once per page, and not once per object by the filter. An error is kept in the choice.
func (x *exchange) ready(c *choice) {
	if c.repr == nil {
		return
	}
	opts := storage.ListOptions{Match: storage.Latest, Limit: readyPage}
	for c.err == nil {
		page, err := x.res.Store.ListItems(x.r.Context(), x.info.Namespace, opts)
		if err != nil {
			return // the request meets it, too
		}
		_, c.err = c.repr.ofAll(x.r.Context(), page.Items)
		if page.Continue == "" {
			return
		}
		opts = storage.ListOptions{Limit: readyPage, Continue: page.Continue}
	}
}

// readyPage is how many objects are converted together.
const readyPage = 500

// beyondMetadata reports whether a valid field selector has a field outside metadata, which is the same in all
// versions.
func beyondMetadata(selector string) bool {
	s, err := fields.ParseSelector(selector)
	return err == nil && slices.ContainsFunc(s.Requirements(), func(r fields.Requirement) bool {
		return !strings.HasPrefix(r.Field, "metadata.")
	})
}

// selectionOf builds the filter on the facts of items. name, if not "", is the one object that a deprecated watch path
// asks for.
func selectionOf(rt *catalog.Route, opts *metav1.ListOptions, name string) (selection, error) {
	var label labels.Selector
	if opts.LabelSelector != "" {
		var err error
		if label, err = labels.Parse(opts.LabelSelector); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	field := fields.Everything()
	if opts.FieldSelector != "" {
		var err error
		if field, err = fields.ParseSelector(opts.FieldSelector); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if field, err = storedFields(rt, field); err != nil {
			return nil, err
		}
	}
	if name != "" {
		field = fields.AndSelectors(field, fields.OneTermEqualSelector("metadata.name", name))
	}
	switch {
	case label == nil && field.Empty():
		return nil, nil
	case label == nil:
		return func(i *storage.Item) bool { return field.Matches(i.Facts.Fields()) }, nil
	case field.Empty():
		return func(i *storage.Item) bool { return label.Matches(i.Facts.Labels()) }, nil
	}
	return func(i *storage.Item) bool { return label.Matches(i.Facts.Labels()) && field.Matches(i.Facts.Fields()) }, nil
}

// storedFields checks the names in a field selector, and translates those of a version to the row's. The words of the
// error depend on the kind, as upstream's.
func storedFields(rt *catalog.Route, s fields.Selector) (fields.Selector, error) {
	known := map[string]string{"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace"}
	if names := rt.Version.FieldNames; names != nil {
		maps.Copy(known, names)
	} else {
		for _, n := range rt.Row.FieldNames {
			known[n] = n
		}
	}
	out, err := s.Transform(func(name, value string) (string, string, error) {
		if stored, ok := known[name]; ok {
			return stored, value, nil
		}
		if len(known) == 2 && !rt.Version.Dynamic() {
			return "", "", fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`,
				name)
		}
		return "", "", fmt.Errorf("field label not supported: %s", name)
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}
