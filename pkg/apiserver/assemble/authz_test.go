package assemble

import (
	"log/slog"
	"maps"
	"slices"
	"testing"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// heard is an informer that has heard of everything, or not.
type heard bool

func (h *heard) HasSynced() bool { return bool(*h) }

// The server is not ready while a mode of authorization would refuse what it allows later.
func TestInformerSync(t *testing.T) {
	t.Parallel()
	var node, rbac heard
	a, err := newAuthorization(&Options{Authorization: Authorization{Modes: []string{"Node", "RBAC", "AlwaysAllow"}}},
		&sources{from: memory.New(&storage.FactsTable{}), rows: rows.All()}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if modes := slices.Sorted(maps.Keys(a.informers)); !slices.Equal(modes, []string{"Node", "RBAC"}) {
		t.Errorf("looked at are %v", modes)
	}
	a.informers = map[string]informer{"Node": &node, "RBAC": &rbac}
	check := a.informerSync()
	for _, step := range []struct {
		node, rbac heard
		ready      bool
	}{{false, false, false}, {true, false, false}, {false, true, false}, {true, true, true}} {
		node, rbac = step.node, step.rbac
		if err := check.Run(nil); (err == nil) != step.ready {
			t.Errorf("node %v, RBAC %v: %v", node, rbac, err)
		}
	}
	if check.Name != "informer-sync" {
		t.Errorf("it is called %q", check.Name)
	}
}
