package split_test

import (
	"context"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/split"
	"bonsai/pkg/apiserver/storage/storagetest"
)

var _ storage.Interface = (*split.Storage[storage.Interface])(nil)

// apart is a split storage whose revision is that of the part under test.
type apart struct {
	*split.Storage[*memory.Storage]
	part *memory.Storage
}

func (a apart) Revision(ctx context.Context) (int64, error) { return a.part.Revision(ctx) }

// Compact implements storagetest.Compacter.
func (a apart) Compact(ctx context.Context, revision int64) error {
	return a.part.Compact(ctx, revision)
}

// TestSuite: a resource whose objects are elsewhere behaves like all others, and so does what stays.
func TestSuite(t *testing.T) {
	t.Parallel()
	for name, parted := range map[string]bool{"part": true, "rest": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.Suite(t, func(*testing.T) storage.Interface {
				here, there := memory.New(storagetest.Table()), memory.New(storagetest.Table())
				if parted {
					return apart{split.New(here, map[string]*memory.Storage{storagetest.Prefix: there}), there}
				}
				return apart{split.New(here, map[string]*memory.Storage{"/registry/other/": there}), here}
			})
		})
	}
}

// TestOf: a key belongs to the longest prefix, and a name that only begins like one does not.
func TestOf(t *testing.T) {
	t.Parallel()
	rest, services, specs := memory.New(nil), memory.New(nil), memory.New(nil)
	s := split.New(rest, map[string]*memory.Storage{"/registry/services/": services,
		"/registry/services/specs/": specs})
	for key, want := range map[string]*memory.Storage{
		"/registry/services/specs/": specs, "/registry/services/specs/ns/a": specs,
		"/registry/services/specs/ns/": specs, "/registry/services/endpoints/ns/a": services,
		"/registry/services/specs": services, "/registry/servicesx/a": rest, "/registry/services": rest,
		"/registry/": rest, "/registry/pods/registry/services/a": rest, "": rest,
	} {
		if s.Of(key) != want {
			t.Errorf("%q belongs to the wrong storage", key)
		}
	}
}
