package resource

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation/path"
)

// Two functions give the paths of requests: CollectionPath for what a verb does to many objects, ObjectPath for what it
// does to one. They are apart because the path of an object without a name is that of its collection: a DELETE that
// lost its name on the way would delete every object of its kind.

// CollectionPath returns the URL path of the resource's collection: in one namespace, or with namespace "" in all.
// It refuses a namespace that would be read as another path ("..", "a/b").
func CollectionPath(m *meta.RESTMapping, namespace string) ([]string, error) {
	p := []string{"/apis", m.Resource.Group, m.Resource.Version}
	if m.Resource.Group == "" {
		p = []string{"/api", m.Resource.Version}
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace && namespace != "" {
		if err := checkSegment("namespace", namespace); err != nil {
			return nil, err
		}
		p = append(p, "namespaces", namespace)
	}
	return append(p, m.Resource.Resource), nil
}

// ObjectPath returns the URL path of the object of that name, or of its subresource; an empty subresource is the object
// itself. It refuses an empty name, an empty namespace for a kind that has namespaces, and what would be read as
// another path.
func ObjectPath(m *meta.RESTMapping, namespace, name string, subresources ...string) ([]string, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace && namespace == "" {
		return nil, errors.New("an empty namespace may not be set when a resource name is provided")
	}
	p, err := CollectionPath(m, namespace)
	if err != nil {
		return nil, err
	}
	p = append(p, name)
	for _, s := range subresources {
		if s == "" {
			continue
		}
		if err := checkSegment("subresource", s); err != nil {
			return nil, err
		}
		p = append(p, s)
	}
	return p, nil
}

// ErrNoName is the error of a request for an object whose name is empty, as of a variable of the shell that is not set.
var ErrNoName = errors.New("resource name may not be empty")

// CheckName reports why name cannot be an object's: it is empty, or would be read as another path.
func CheckName(name string) error {
	if name == "" {
		return ErrNoName
	}
	return checkSegment("resource name", name)
}

// checkSegment refuses what is no single segment of a URL's path; what names its meaning in the error.
func checkSegment(what, segment string) error {
	if problems := path.IsValidPathSegmentName(segment); len(problems) > 0 {
		return fmt.Errorf("invalid %s %q: %v", what, segment, problems)
	}
	return nil
}
