package registry

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// When owner references that are there twice are found: in what a client sent, or in what became of it.
const (
	OwnersSent    = "contains duplicate entries"
	ownersChanged = "contains duplicate entries after mutating admission happens"
)

// OwnersOnce keeps one of owner references that are all the same, the first, and warns of the others. Server-side
// apply, which tells them apart by their uid, could not read the object otherwise.
func OwnersOnce(obj metav1.Object, when string, warn func(string)) {
	owners := obj.GetOwnerReferences()
	if len(owners) < 2 {
		return
	}
	// Comparable, for the map: comparing each with each takes time by the square, and a client chooses the number.
	type reference struct {
		apiVersion, kind, name string
		uid                    types.UID
		controller, blocks     string
	}
	seen := make(map[reference]bool, len(owners)) // a client may send as many as fit into an object
	kept := make([]metav1.OwnerReference, 0, len(owners))
	var again []string
	for _, o := range owners {
		r := reference{o.APIVersion, o.Kind, o.Name, o.UID, shown(o.Controller), shown(o.BlockOwnerDeletion)}
		if seen[r] {
			again = append(again, string(o.UID))
			continue
		}
		seen[r], kept = true, append(kept, o)
	}
	if len(again) == 0 {
		return
	}
	obj.SetOwnerReferences(kept)
	warn(fmt.Sprintf(".metadata.ownerReferences %s; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s",
		when, strings.Join(again, ", ")))
}

// shown tells true, false and nothing apart.
func shown(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}
