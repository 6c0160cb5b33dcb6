package validate

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// IPWarnings returns what is wrong with how an address is written, which it may keep: it was so before, or is only not
// canonical. Values that are no addresses have none.
func IPWarnings(path *field.Path, ip string) []string {
	if netutils.ParseIPSloppy(ip) == nil {
		return nil
	}
	return validation.GetWarningsForIP(path, ip)
}

// CIDRWarnings is IPWarnings of a range of addresses.
func CIDRWarnings(path *field.Path, cidr string) []string {
	if _, _, err := netutils.ParseCIDRSloppy(cidr); err != nil {
		return nil
	}
	return validation.GetWarningsForCIDR(path, cidr)
}
