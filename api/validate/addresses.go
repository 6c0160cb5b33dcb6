package validate

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IPWarnings tells of a valid address that is not as it would be shown.
func IPWarnings(path *field.Path, ip string) []string {
	if len(validation.IsValidIPForLegacyField(path, ip, true, nil)) > 0 {
		return nil
	}
	return validation.GetWarningsForIP(path, ip)
}

// CIDRWarnings is IPWarnings of a range of addresses.
func CIDRWarnings(path *field.Path, cidr string) []string {
	if len(validation.IsValidCIDRForLegacyField(path, cidr, true, nil)) > 0 {
		return nil
	}
	return validation.GetWarningsForCIDR(path, cidr)
}
