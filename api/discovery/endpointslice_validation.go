package discovery

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Bounds of a slice.
const (
	maxEndpoints = 1000
	maxPorts     = 20000
	maxAddresses = 100
	maxTopology  = 16
	maxZoneHints = 8
	maxNodeHints = 8
)

func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := validateAddressType(s.AddressType, field.NewPath("addressType"))
	errs = append(errs, validateEndpoints(s.Endpoints, s.AddressType, field.NewPath("endpoints"))...)
	return append(errs, validatePorts(s.Ports, field.NewPath("ports"))...)
}

// validateEndpointSliceUpdate looks at endpoints only if one of them changes.
func validateEndpointSliceUpdate(obj, old *discoveryv1.EndpointSlice) field.ErrorList {
	path := field.NewPath("addressType")
	errs := validateAddressType(obj.AddressType, path)
	if !apiequality.Semantic.DeepEqual(obj.Endpoints, old.Endpoints) {
		errs = append(errs, validateEndpoints(obj.Endpoints, obj.AddressType, field.NewPath("endpoints"))...)
	}
	errs = append(errs, validatePorts(obj.Ports, field.NewPath("ports"))...)
	return append(errs, validate.Immutable(obj.AddressType, old.AddressType, path)...)
}

func validateAddressType(t discoveryv1.AddressType, path *field.Path) field.ErrorList {
	valid := []discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4,
		discoveryv1.AddressTypeIPv6}
	switch {
	case t == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(valid, t):
		return field.ErrorList{field.NotSupported(path, t, valid)}
	}
	return nil
}

func validateEndpoints(endpoints []discoveryv1.Endpoint, t discoveryv1.AddressType, path *field.Path) field.ErrorList {
	if len(endpoints) > maxEndpoints {
		return field.ErrorList{field.TooMany(path, len(endpoints), maxEndpoints)}
	}
	var errs field.ErrorList
	for i := range endpoints {
		e, at := &endpoints[i], path.Index(i)
		addresses := at.Child("addresses")
		switch {
		case len(e.Addresses) == 0:
			errs = append(errs, field.Required(addresses, ""))
		case len(e.Addresses) > maxAddresses:
			errs = append(errs, field.TooMany(addresses, len(e.Addresses), maxAddresses))
		}
		for j, a := range e.Addresses {
			errs = append(errs, validateAddress(a, t, addresses, j)...)
		}
		if n := e.NodeName; n != nil {
			errs = append(errs, validate.Invalid(at.Child("nodeName"), *n,
				apivalidation.NameIsDNSSubdomain(*n, false))...)
		}
		if h := e.Hostname; h != nil {
			errs = append(errs, validate.Invalid(at.Child("hostname"), *h, validation.IsDNS1123Label(*h))...)
		}
		errs = append(errs, validateTopology(e.DeprecatedTopology, at.Child("deprecatedTopology"))...)
		if e.Hints != nil {
			errs = append(errs, validateHints(e.Hints, at.Child("hints"))...)
		}
	}
	return errs
}

// validateAddress reports a wrong family at the list of addresses, everything else at the address.
func validateAddress(a string, t discoveryv1.AddressType, list *field.Path, i int) field.ErrorList {
	path := list.Index(i)
	switch t {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(path, a)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		return nil
	}
	errs := validation.IsValidIPForLegacyField(path, a, true, nil)
	ip, err := netip.ParseAddr(a)
	switch {
	case err != nil || len(errs) > 0:
		return errs
	case ip.Is4() != (t == discoveryv1.AddressTypeIPv4):
		errs = append(errs, field.Invalid(list, a, fmt.Sprintf("must be an %s address", t)))
	default:
		if errs = validation.IsValidIP(path, a); len(errs) > 0 { // written otherwise than it would be shown
			return errs
		}
	}
	return append(errs, validate.EndpointAddress(ip.String(), ip, path)...)
}

func validateTopology(labels map[string]string, path *field.Path) field.ErrorList {
	if len(labels) > maxTopology {
		return field.ErrorList{field.TooMany(path, len(labels), maxTopology)}
	}
	return metavalidation.ValidateLabels(labels, path)
}

func validateHints(h *discoveryv1.EndpointHints, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	zones, nodes := sets.New[string](), sets.New[string]()
	if len(h.ForZones) > maxZoneHints {
		errs = append(errs, field.TooMany(path.Child("forZones"), len(h.ForZones), maxZoneHints))
		return errs
	}
	for i, z := range h.ForZones {
		at := path.Child("forZones").Index(i).Child("name")
		if zones.Has(z.Name) {
			errs = append(errs, field.Duplicate(at, z.Name))
		}
		zones.Insert(z.Name)
		errs = append(errs, validate.Invalid(at, z.Name, validation.IsValidLabelValue(z.Name))...)
	}
	if len(h.ForNodes) > maxNodeHints {
		return append(errs, field.TooMany(path.Child("forNodes"), len(h.ForNodes), maxNodeHints))
	}
	for i, n := range h.ForNodes {
		at := path.Child("forNodes").Index(i).Child("name")
		if nodes.Has(n.Name) {
			errs = append(errs, field.Duplicate(at, n.Name))
		}
		nodes.Insert(n.Name)
		errs = append(errs, validate.Invalid(at, n.Name, apivalidation.NameIsDNSSubdomain(n.Name, false))...)
	}
	return errs
}

func validatePorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	if len(ports) > maxPorts {
		return field.ErrorList{field.TooMany(path, len(ports), maxPorts)}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		name := deref(p.Name)
		if name != "" {
			errs = append(errs, validate.Invalid(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		valid := []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
		switch {
		case p.Protocol == nil:
			errs = append(errs, field.Required(at.Child("protocol"), ""))
		case !slices.Contains(valid, *p.Protocol):
			errs = append(errs, field.NotSupported(at.Child("protocol"), *p.Protocol, valid))
		}
		if p.AppProtocol != nil {
			errs = append(errs, validate.Invalid(at.Child("appProtocol"), *p.AppProtocol,
				validation.IsQualifiedName(*p.AppProtocol))...)
		}
	}
	return errs
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
