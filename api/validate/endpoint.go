package validate

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EndpointAddress refuses addresses that no endpoint of a Service can have, since they lead to another place from
// elsewhere. text is ip as it was written, for the errors. Their words are upstream's.
func EndpointAddress(text string, ip netip.Addr, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, c := range []struct {
		is   bool
		says string
	}{
		{ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", text)},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if c.is {
			errs = append(errs, field.Invalid(path, text, c.says))
		}
	}
	return errs
}
