package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
