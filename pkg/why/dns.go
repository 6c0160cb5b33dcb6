package why

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// OpensDNS reports whether a rule lets packets to port 53 through, to anybody: to whom, is not looked at.
func OpensDNS(r networkingv1.NetworkPolicyEgressRule) bool {
	if len(r.Ports) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Port == nil {
			return true
		}
		if p.Port.StrVal != "" {
			return strings.Contains(p.Port.StrVal, "dns")
		}
		end := p.Port.IntVal
		if p.EndPort != nil {
			end = *p.EndPort
		}
		return p.Port.IntVal <= 53 && 53 <= end
	})
}
