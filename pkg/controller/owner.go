package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// indexByOwner files an object under its controller's uid, or under its namespace's orphans.
func indexByOwner(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansOf(m.GetNamespace())}, nil
}

func orphansOf(ns string) string { return "orphans/" + ns }

// ControllerKey names the controller of obj if it is of the given kind.
func ControllerKey(obj metav1.Object, kind schema.GroupVersionKind) (key Key, uid types.UID, ok bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != kind.Kind {
		return Key{}, "", false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != kind.Group {
		return Key{}, "", false
	}
	return Key{Namespace: obj.GetNamespace(), Name: ref.Name}, ref.UID, true
}
