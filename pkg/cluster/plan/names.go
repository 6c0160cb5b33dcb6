package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func CheckNodeName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// checkName returns what is wrong with a cluster's name.
func CheckName(name string) error {
	const longest = 20
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longest {
		return fmt.Errorf("%q must be at most %d lower-case letters, digits and dashes, as in dev-1", name, longest)
	}
	return nil
}
