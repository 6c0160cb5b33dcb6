package podspec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NameWarnings complains of a new object's name that cannot be a host's, as pods' names and hostnames are made of it.
// In says what it is used in: "the Pod's hostname", or "Pod names and hostnames" for what makes pods.
func NameWarnings(name, in string) []string {
	bad := validation.IsDNS1123Label(name)
	if len(bad) == 0 {
		return nil
	}
	return []string{fmt.Sprintf(
		"metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v",
		in, bad)}
}
