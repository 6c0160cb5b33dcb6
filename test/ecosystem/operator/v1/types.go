// Package v1 is the stored version of the API of the tried operator: a Website is pages that a Deployment serves.
package v1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is that of all versions.
const Group = "sites.example.com"

// Website is a set of pages.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec,omitempty"`
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec says what is served.
type WebsiteSpec struct {
	// Pages are the pages' texts by their file names.
	Pages map[string]string `json:"pages,omitempty"`
	// Replicas is the number of pods; a webhook sets 1 if it is not given, and refuses more than 5.
	Replicas *int32 `json:"replicas,omitempty"`
}

// WebsiteStatus says how far the controller has come.
type WebsiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// WebsiteList is a list of Websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

// Hub marks the version that the others are converted to and from.
func (*Website) Hub() {}

// DeepCopyObject implements runtime.Object.
func (w *Website) DeepCopyObject() runtime.Object {
	out := &Website{TypeMeta: w.TypeMeta, ObjectMeta: *w.ObjectMeta.DeepCopy(), Spec: w.Spec, Status: w.Status}
	out.Spec.Pages = maps.Clone(w.Spec.Pages)
	if w.Spec.Replicas != nil {
		out.Spec.Replicas = new(*w.Spec.Replicas)
	}
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	out := &WebsiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Website))
	}
	return out
}

// AddToScheme registers the version's kinds.
func AddToScheme(s *runtime.Scheme) {
	gv := schema.GroupVersion{Group: Group, Version: "v1"}
	s.AddKnownTypes(gv, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(s, gv)
}
