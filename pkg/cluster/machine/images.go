package machine

import (
	"fmt"
	"os"
	"slices"

	"bonsai/pkg/cluster/plan"
)

// CheckImages has an error for each archive of a local image that the cluster needs and that has not been built. The
// check before a start calls it: a node without the image of a sandbox could run no pod at all.
func CheckImages(c plan.Config) []error {
	var errs []error
	for _, image := range c.LocalImages() {
		if _, err := os.Stat(c.Image(image)); err != nil {
			target := "make build"
			if !slices.Contains(plan.DefaultImages(), image) {
				target = "make addons; a release archive has the add-ons that ADDONS of make release names"
			}
			errs = append(errs, fmt.Errorf("%s is missing (%s)", c.Image(image), target))
		}
	}
	return errs
}
