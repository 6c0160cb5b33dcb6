package scale

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// fields keep the managedFields of an object while its Scale is written: who has its replicas has those of the Scale.
type fields struct {
	access  metav1.Object
	handler *managedfields.ScaleHandler
}

// newFields returns those of obj for a Scale that is written in a version of its kind. paths are where each version has
// the wanted replicas: of a version without one, the entries would be lost.
func newFields(obj runtime.Object, version schema.GroupVersion, paths managedfields.ResourcePathMappings) (*fields,
	error) {
	access, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("scale: %T has no metadata", obj)
	}
	return &fields{access, managedfields.NewScaleHandler(access.GetManagedFields(), version, paths)}, nil
}

// ofScale are the managedFields as the Scale has them.
func (f *fields) ofScale() ([]metav1.ManagedFieldsEntry, error) { return f.handler.ToSubresource() }

// take takes over what became of them.
func (f *fields) take(s *autoscalingv1.Scale) error {
	entries, err := f.handler.ToParent(s.ManagedFields)
	if err == nil {
		f.access.SetManagedFields(entries)
	}
	return err
}
