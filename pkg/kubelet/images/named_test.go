package images

import (
	"fmt"
	"testing"

	"bonsai/pkg/kubelet/runtime"
)

// TestNamedImages: the node's status has the largest images (nodeStatusMaxImages), so it must choose from all of them.
func TestNamedImages(t *testing.T) {
	t.Parallel()
	list := []runtime.Image{{ID: "nameless", Size: 1}}
	for i := range 60 {
		list = append(list, runtime.Image{ID: fmt.Sprint(i), RepoTags: []string{fmt.Sprint(i)}, Size: uint64(i)})
	}
	got := Named(list)
	if len(got) != 60 || got[59].SizeBytes != 59 {
		t.Errorf("%d images, want 60 of which the last is the largest", len(got))
	}
}
