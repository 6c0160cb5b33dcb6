package controller

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestMonitor(t *testing.T) {
	t.Parallel()
	var said []string
	m := NewMonitor(schema.GroupVersionResource{Resource: "leases"},
		func(o metav1.Object, fresh bool) { said = append(said, fmt.Sprint("+", o.GetUID(), fresh)) },
		func(ns string, uid types.UID) { said = append(said, fmt.Sprint("-", ns, uid)) })
	object := func(ns string, uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, UID: uid}}
	}
	f := feed{m}
	expect := func(a, b int, words ...string) {
		t.Helper()
		if m.Count("a") != a || m.Count("b") != b || !slices.Equal(said, words) {
			t.Errorf("%d in a, %d in b, heard %v; want %d, %d, %v", m.Count("a"), m.Count("b"), said, a, b, words)
		}
		said = nil
	}
	if m.Synced() {
		t.Error("it knows all before the first list")
	}
	f.Replace([]*metav1.PartialObjectMetadata{object("a", "1"), object("a", "2")})
	expect(2, 0, "+1true", "+2true")
	if !m.Synced() {
		t.Error("it does not know that it knows all")
	}
	f.Set(object("a", "2"))
	f.Set(object("b", "3"))
	expect(2, 1, "+2false", "+3true")
	f.Delete(object("a", "1"))
	f.Delete(object("a", "1"))
	expect(1, 1, "-a1", "-1")
	f.Replace([]*metav1.PartialObjectMetadata{object("b", "4")})
	slices.Sort(said)
	expect(0, 1, "+4true", "-a2", "-b3")
}
