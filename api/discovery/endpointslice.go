package discovery

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func endpointSliceRow() resources.Row {
	doc := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return resources.Row{
		GVK: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), Resource: "endpointslices",
		Singular:    "endpointslice",
		Namespaced:  true,
		StoragePath: "endpointslices",
		New:         resources.Make[discoveryv1.EndpointSlice],
		Strategy: resources.Typed[*discoveryv1.EndpointSlice]{
			Default:        defaultEndpointSlice,
			Validate:       validateEndpointSlice,
			ValidateUpdate: validateEndpointSliceUpdate,
			PrepareCreate:  func(s *discoveryv1.EndpointSlice) { dropTopology(s, nil) },
			PrepareUpdate:  dropTopology,
			Warnings:       sliceWarnings,
			SpecChanged:    sliceChanged,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("AddressType", doc["addressType"]),
			resources.Column("Ports", doc["ports"]),
			resources.Column("Endpoints", doc["endpoints"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(s *discoveryv1.EndpointSlice, now time.Time) []any {
			return []any{s.Name, string(s.AddressType), portsText(s.Ports), endpointsText(s.Endpoints),
				resources.Age(s.CreationTimestamp, now)}
		}),
	}
}

// sliceChanged: the generation moves with what the slice says and with its labels.
func sliceChanged(obj, old *discoveryv1.EndpointSlice) bool {
	return !apiequality.Semantic.DeepEqual(obj.Endpoints, old.Endpoints) ||
		!apiequality.Semantic.DeepEqual(obj.Ports, old.Ports) ||
		!apiequality.Semantic.DeepEqual(obj.Labels, old.Labels) || obj.AddressType != old.AddressType
}

// dropTopology drops a field that was replaced by nodeName and zone, unless the slice had it already.
func dropTopology(s, old *discoveryv1.EndpointSlice) {
	if old != nil {
		for i := range old.Endpoints {
			if old.Endpoints[i].DeprecatedTopology != nil {
				return
			}
		}
	}
	for i := range s.Endpoints {
		s.Endpoints[i].DeprecatedTopology = nil
	}
}

// sliceWarnings are of kinds of addresses, and of addresses that were written otherwise than they would be shown before
// that was refused.
func sliceWarnings(s, _ *discoveryv1.EndpointSlice) []string {
	if s.AddressType == discoveryv1.AddressTypeFQDN {
		return []string{"spec.addressType: FQDN endpoints are deprecated"}
	}
	var w []string
	for i := range s.Endpoints {
		addresses := field.NewPath("endpoints").Index(i).Child("addresses")
		for j, a := range s.Endpoints[i].Addresses {
			w = append(w, validate.IPWarnings(addresses.Index(j), a)...)
		}
	}
	return w
}

func defaultEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Name == nil {
			p.Name = new(string)
		}
		if p.Protocol == nil {
			tcp := corev1.ProtocolTCP
			p.Protocol = &tcp
		}
	}
}

// shown is how many ports or addresses a table lists before it only counts the rest.
const shown = 3

func portsText(ports []discoveryv1.EndpointPort) string {
	words := make([]string, len(ports))
	for i, p := range ports {
		switch {
		case p.Port != nil:
			words[i] = fmt.Sprint(*p.Port)
		case p.Name != nil:
			words[i] = *p.Name
		}
	}
	if text := few(words); text != "" {
		return text
	}
	return "<unset>"
}

func endpointsText(endpoints []discoveryv1.Endpoint) string {
	var all []string
	for _, e := range endpoints {
		all = append(all, e.Addresses...)
	}
	if len(all) == 0 {
		return "<unset>"
	}
	return few(all)
}

// few joins the first words and counts the others.
func few(words []string) string {
	if len(words) <= shown {
		return strings.Join(words, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(words[:shown], ","), len(words)-shown)
}
