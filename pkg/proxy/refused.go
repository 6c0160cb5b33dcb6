package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Refused is a Backend's error if it wrote everything but single services, which keep what they had before.
type Refused struct {
	// Services are the refused ones, each with its reason.
	Services map[Name]error
}

// Error names the services, in order.
func (r *Refused) Error() string {
	var errs []error
	for _, name := range slices.SortedFunc(maps.Keys(r.Services), func(a, b Name) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		errs = append(errs, fmt.Errorf("service %s: %w", name, r.Services[name]))
	}
	return errors.Join(errs...).Error()
}
