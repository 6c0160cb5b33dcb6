package served

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// While the server does not tell what it serves, what it served some minutes ago is believed, but not that a kind is
// none of it.
func TestFinderOutlivesFailedReads(t *testing.T) {
	t.Parallel()
	now, down := time.Unix(1000, 0), errors.New("connection refused")
	var failing error
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	f := NewFinder(func(context.Context) (*Catalog, error) {
		if failing != nil {
			return nil, failing
		}
		return NewCatalog(Resource{GroupVersionResource: apps.WithResource("deployments"), Kind: "Deployment"}), nil
	}, func() time.Time { return now })
	find := func(kind string) error {
		_, err := f.ForKind(t.Context(), apps.WithKind(kind))
		_, again := f.ForGroupKind(t.Context(), apps.WithKind(kind).GroupKind())
		if (err == nil) != (again == nil) {
			t.Errorf("%s: in its version %v, in any %v", kind, err, again)
		}
		return err
	}
	failing = down
	if err := find("Deployment"); !errors.Is(err, down) {
		t.Errorf("nothing was ever read: %v, want %v", err, down)
	}
	failing = nil
	if err := find("Deployment"); err != nil {
		t.Fatal(err)
	}
	if err := find("Thing"); !meta.IsNoMatchError(err) {
		t.Errorf("no such kind: %v, want no match", err)
	}
	failing = down
	now = now.Add(time.Minute)
	if err := find("Deployment"); err != nil {
		t.Errorf("known for a minute: %v", err)
	}
	if err := find("Thing"); !errors.Is(err, down) {
		t.Errorf("unknown a minute ago: %v, want %v", err, down)
	}
	now = now.Add(finderStale)
	if err := find("Deployment"); !errors.Is(err, down) {
		t.Errorf("known too long ago: %v, want %v", err, down)
	}
}
