package plan

import (
	"slices"
	"testing"
)

// TestNewImages: an add-on that is switched on needs its image on nodes that run.
func TestNewImages(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	with, err := c.ParseAddons([]string{"metrics-server", "coredns=false"})
	if err != nil {
		t.Fatal(err)
	}
	if got := with.NewImages(c); !slices.Equal(got, []string{"metrics-server"}) {
		t.Errorf("new: %q", got)
	}
	if got := c.NewImages(c); len(got) != 0 {
		t.Errorf("new, though nothing is: %q", got)
	}
}
