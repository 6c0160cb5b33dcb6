package quantity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fractions warns of an amount of bytes in a list that is no whole number.
func Fractions(l corev1.ResourceList, name corev1.ResourceName, path *field.Path) []string {
	if q, ok := l[name]; ok && q.MilliValue()%1000 != 0 {
		return []string{fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer",
			path.Key(string(name)), q.String())}
	}
	return nil
}
