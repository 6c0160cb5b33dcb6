package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names returns the names in l, sorted.
func Names(l corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(l)) }

// Add returns a + b, with every name of either.
func Add(a, b corev1.ResourceList) corev1.ResourceList {
	sum := clone(a)
	AddTo(sum, b)
	return sum
}

// AddTo adds b to sum.
func AddTo(sum, b corev1.ResourceList) {
	for name, q := range b {
		total, ok := sum[name]
		if !ok {
			sum[name] = q.DeepCopy()
			continue
		}
		total = total.DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}

// Subtract returns a - b, with every name of either.
func Subtract(a, b corev1.ResourceList) corev1.ResourceList {
	rest := clone(a)
	for name, q := range b {
		left := rest[name].DeepCopy()
		left.Sub(q)
		rest[name] = left
	}
	return rest
}

// Mask returns what l says of names.
func Mask(l corev1.ResourceList, names []corev1.ResourceName) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range names {
		if q, ok := l[name]; ok {
			out[name] = q
		}
	}
	return out
}

// Beyond returns the names of l that are more than hard allows, sorted.
func Beyond(l, hard corev1.ResourceList) []corev1.ResourceName {
	return slices.DeleteFunc(Names(l), func(name corev1.ResourceName) bool {
		bound, ok := hard[name]
		q := l[name]
		return !ok || q.Cmp(bound) <= 0
	})
}

// Equal reports whether a and b have the same names with the same amounts.
func Equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// Text shows l as "cpu=1,pods=2".
func Text(l corev1.ResourceList) string {
	words := make([]string, 0, len(l))
	for _, name := range Names(l) {
		q := l[name]
		words = append(words, string(name)+"="+q.String())
	}
	return strings.Join(words, ",")
}

func clone(l corev1.ResourceList) corev1.ResourceList {
	if l == nil {
		return corev1.ResourceList{}
	}
	return l.DeepCopy()
}
