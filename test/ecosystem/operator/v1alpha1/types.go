// Package v1alpha1 is the first version of the API of the tried operator: a Website has one page.
package v1alpha1

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"bonsai/test/ecosystem/operator/v1"
)

// index is the file that the one page of this version becomes.
const index = "index.html"

// pagesAnnotation keeps, as JSON, what this version has no field for.
const pagesAnnotation = v1.Group + "/pages"

// Website is one page.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec      `json:"spec,omitempty"`
	Status v1.WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec says what is served.
type WebsiteSpec struct {
	HTML     string `json:"html,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

// WebsiteList is a list of Websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

// ConvertTo implements conversion.Convertible.
func (w *Website) ConvertTo(hub conversion.Hub) error {
	out := hub.(*v1.Website)
	out.ObjectMeta, out.Status = *w.ObjectMeta.DeepCopy(), w.Status
	out.Spec.Replicas = w.Spec.Replicas
	if kept, ok := out.Annotations[pagesAnnotation]; ok {
		if err := json.Unmarshal([]byte(kept), &out.Spec.Pages); err != nil {
			return err
		}
		delete(out.Annotations, pagesAnnotation)
	}
	if w.Spec.HTML != "" {
		if out.Spec.Pages == nil {
			out.Spec.Pages = map[string]string{}
		}
		out.Spec.Pages[index] = w.Spec.HTML
	}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (w *Website) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*v1.Website)
	w.ObjectMeta, w.Status = *in.ObjectMeta.DeepCopy(), in.Status
	w.Spec = WebsiteSpec{HTML: in.Spec.Pages[index], Replicas: in.Spec.Replicas}
	others := maps.Clone(in.Spec.Pages)
	delete(others, index)
	if len(others) == 0 {
		return nil
	}
	kept, err := json.Marshal(others)
	if err == nil {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, pagesAnnotation, string(kept))
	}
	return err
}

// DeepCopyObject implements runtime.Object.
func (w *Website) DeepCopyObject() runtime.Object {
	hub := (&v1.Website{ObjectMeta: w.ObjectMeta, Status: w.Status,
		Spec: v1.WebsiteSpec{Replicas: w.Spec.Replicas}}).DeepCopyObject().(*v1.Website)
	return &Website{TypeMeta: w.TypeMeta, ObjectMeta: hub.ObjectMeta, Status: hub.Status,
		Spec: WebsiteSpec{HTML: w.Spec.HTML, Replicas: hub.Spec.Replicas}}
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
	gv := schema.GroupVersion{Group: v1.Group, Version: "v1alpha1"}
	s.AddKnownTypes(gv, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(s, gv)
}
