package plan

import (
	"fmt"
	"strings"
)

// IPFamily is the family, or the families, of the addresses of nodes, pods and Services.
type IPFamily string

// The families. In a cluster of Dual the first address of everything is an IPv4 address.
const (
	IPv4 IPFamily = "" // so that the zero value is the default
	IPv6 IPFamily = "ipv6"
	Dual IPFamily = "dual"
)

// ParseIPFamily reads ipv4, ipv6 or dual, in any case.
func ParseIPFamily(text string) (IPFamily, error) {
	switch f := IPFamily(strings.ToLower(text)); f {
	case "ipv4":
		return IPv4, nil
	case IPv6, Dual:
		return f, nil
	}
	return IPv4, fmt.Errorf("must be ipv4, ipv6 or dual, not %q", text)
}

// IptablesPrograms returns the programs that write the rules of iptables for the family.
func (f IPFamily) IptablesPrograms() []string {
	switch f {
	case IPv6:
		return []string{"ip6tables-restore"}
	case Dual:
		return []string{"iptables-restore", "ip6tables-restore"}
	}
	return []string{"iptables-restore"}
}

// CommaList joins a list with commas, as flags take it.
func CommaList[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = e.String()
	}
	return strings.Join(texts, ",")
}
