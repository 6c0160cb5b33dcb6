package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// CheckNodeName returns what is wrong with the name of a node that joins.
func CheckNodeName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// CheckName returns what is wrong with the name of a cluster or a snapshot. It becomes a part of paths, so it has no
// dots and no slashes.
func CheckName(name string) error {
	const longest = 20
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longest {
		return fmt.Errorf("%q must be at most %d lower-case letters, digits and dashes, as in dev-1", name, longest)
	}
	return nil
}
