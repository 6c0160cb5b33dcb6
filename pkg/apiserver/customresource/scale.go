package customresource

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// Scale says where the objects of a definition keep the numbers of their scale subresource: the segments of the fields'
// paths.
type Scale struct {
	Replicas, Observed []string
	Selector           []string // empty: there is none
	// Paths are Replicas of each version by name, with those of versions that have no scale as here.
	Paths map[string][]string
}

// scaleOf is the Scale of a definition: that of its stored version, or else of the first that has one; nil if none has.
func scaleOf(crd *v1.CustomResourceDefinition) *Scale {
	var found *v1.CustomResourceSubresourceScale
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Subresources == nil || v.Subresources.Scale == nil || found != nil && !v.Storage {
			continue
		}
		found = v.Subresources.Scale
	}
	if found == nil {
		return nil
	}
	s := &Scale{Replicas: segments(found.SpecReplicasPath), Observed: segments(found.StatusReplicasPath),
		Paths: map[string][]string{}}
	if found.LabelSelectorPath != nil && *found.LabelSelectorPath != "" {
		s.Selector = segments(*found.LabelSelectorPath)
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		s.Paths[v.Name] = s.Replicas
		if v.Subresources != nil && v.Subresources.Scale != nil {
			s.Paths[v.Name] = segments(v.Subresources.Scale.SpecReplicasPath)
		}
	}
	return s
}

func segments(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// content is what an object without a Go type holds.
func content(obj runtime.Object) (map[string]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("scale: %T has a Go type", obj)
	}
	return u.Object, nil
}

// number returns the number at path; false if there is none.
func number(obj runtime.Object, path []string) (int32, bool, error) {
	in, err := content(obj)
	if err != nil {
		return 0, false, err
	}
	n, ok, err := unstructured.NestedInt64(in, path...)
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		err = fmt.Errorf("%d is no number of replicas", n)
	}
	return int32(n), ok, err
}

// ReplicasOf are the wanted replicas of an object.
func (s *Scale) ReplicasOf(obj runtime.Object) (int32, error) {
	n, ok, err := number(obj, s.Replicas)
	switch {
	case err != nil:
		return 0, apierrors.NewInternalError(err)
	case !ok:
		return 0, &registry.NoReplicasError{Path: "." + strings.Join(s.Replicas, ".")}
	}
	return n, nil
}

// SetReplicas sets them.
func (s *Scale) SetReplicas(obj runtime.Object, n int32) error {
	in, err := content(obj)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(in, int64(n), s.Replicas...)
}

// ObservedOf are the replicas that an object has; 0 if it does not say.
func (s *Scale) ObservedOf(obj runtime.Object) (int32, error) {
	n, _, err := number(obj, s.Observed)
	return n, err
}

// SelectorOf is the label selector of what an object has replicas of; "" if it does not say.
func (s *Scale) SelectorOf(obj runtime.Object) (string, error) {
	if len(s.Selector) == 0 {
		return "", nil
	}
	in, err := content(obj)
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(in, s.Selector...)
	return text, err
}
