// Package admissionregistration defines the kinds of the API group admissionregistration.k8s.io (v1): their
// rows, defaults, validation, strategies and table columns, as pure functions.
package admissionregistration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/resources"
)

// category is what "kubectl get" calls all resources by that extend the API.
const category = "api-extensions"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	c := &expression.Compiler{}
	all := []resources.Row{mutatingPolicyRow(c), mutatingBindingRow(), mutatingRow(c), validatingPolicyRow(c),
		validatingBindingRow(), validatingRow(c)}
	for i := range all {
		all[i].Strategy.ValidateName = validateName
	}
	return all
}

// StaticSuffix ends the names of webhooks and policies that files describe. No object of the API has such a name.
const StaticSuffix = ".static.k8s.io"

// validateName checks a name, in Kubernetes' words.
func validateName(name string, prefix bool) []string {
	faults := validation.NameIsDNSSubdomain(name, prefix)
	if strings.HasSuffix(name, StaticSuffix) {
		faults = append(faults, fmt.Sprintf("names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API", StaticSuffix))
	}
	return faults
}
