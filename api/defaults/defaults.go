// Package defaults fills in what a client left out of an object.
package defaults

import (
	"k8s.io/utils/ptr"
)

// Set gives *p the value v if it has its zero value.
func Set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// SetPtr makes *p point to v if it is nil.
func SetPtr[T any](p **T, v T) {
	if *p == nil {
		*p = ptr.To(v)
	}
}
