package rest

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
)

// fromQuery reads the options of a verb out of the query with one of metav1's conversions.
func fromQuery[T any](query url.Values, convert func(*url.Values, *T, conversion.Scope) error) (*T, error) {
	out := new(T)
	if len(query) == 0 {
		return out, nil
	}
	if err := convert(&query, out, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// invalidOptions is the 422 for options that contradict themselves.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// listOptions reads and checks the options of list, watch and deletecollection.
func listOptions(query url.Values) (*metav1.ListOptions, error) {
	opts, err := fromQuery(query, metav1.Convert_url_Values_To_v1_ListOptions)
	if err != nil || len(query) == 0 {
		return opts, err
	}
	if isTrue(query["watch"]) {
		opts.Watch = true
	}
	internal := &internalversion.ListOptions{
		Watch: opts.Watch, ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch,
		Limit: opts.Limit, Continue: opts.Continue, SendInitialEvents: opts.SendInitialEvents, AllowWatchBookmarks: opts.AllowWatchBookmarks,
	}
	return opts, invalidOptions("ListOptions", listvalidation.ValidateListOptions(internal, true))
}

// revisionOf parses a resourceVersion; "" and "0" are 0.
func revisionOf(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", field.Invalid(field.NewPath("resourceVersion"), version, err.Error())))
	}
	return int64(n), nil
}

// selection is the filter of a request's selectors; nil when everything is selected.
type selection func(*storage.Item) bool

// selectionOf builds the filter. name, if not "", is the one object that a deprecated watch path asks for.
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

// storedFields checks the names of a field selector and translates those of a version to the row's.
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
			return "", "", fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, name)
		}
		return "", "", fmt.Errorf("field label not supported: %s", name)
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// storageList translates list options for the storage.
func storageList(opts *metav1.ListOptions, filter selection) (storage.ListOptions, error) {
	out := storage.ListOptions{Limit: opts.Limit, Continue: opts.Continue, Filter: filter}
	if opts.Continue != "" {
		if v := opts.ResourceVersion; v != "" && v != "0" {
			return out, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		return out, nil
	}
	revision, err := revisionOf(opts.ResourceVersion)
	if err != nil {
		return out, err
	}
	out.Revision = revision
	switch {
	case opts.ResourceVersion == "":
		out.Match = storage.Latest
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		out.Match = storage.Exact
	case opts.ResourceVersionMatch == "" && opts.Limit > 0 && revision > 0:
		out.Match = storage.Exact // what an unset match means for a paged list at a version
	default:
		out.Match = storage.NotOlderThan
	}
	return out, nil
}
