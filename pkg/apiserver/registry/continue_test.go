package registry_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// A page whose revision is compacted away is a 410 that offers to go on with an inconsistent list (conformance: "should
// continue listing from the last key if the original version has been compacted away, though the list is
// inconsistent").
func TestExpiredContinue(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := g.Create(ctx, "ns", configMap(name), &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := g.ListItems(ctx, "ns", storage.ListOptions{Match: storage.Latest, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Create(ctx, "ns", configMap("d"), &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	backend := g.Storage.(*memory.Storage)
	now, err := backend.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := backend.Compact(ctx, now); err != nil {
		t.Fatal(err)
	}
	_, err = g.ListItems(ctx, "ns", storage.ListOptions{Limit: 1, Continue: first.Continue})
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.Status().Code != 410 {
		t.Fatalf("expired page: %v", err)
	}
	rest, err := g.ListItems(ctx, "ns", storage.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Items) != 3 || rest.Revision != now {
		t.Fatalf("the rest: %v, %v", rest, err)
	}
}
