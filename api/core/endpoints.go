package core

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func endpointsRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Endpoints"), Resource: "endpoints", Singular: "endpoints",
		Namespaced:  true,
		ShortNames:  []string{"ep"},
		StoragePath: "services/endpoints",
		Deprecated:  "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		New:         resources.Make[corev1.Endpoints],
		Strategy: resources.Typed[*corev1.Endpoints]{
			Default: func(e *corev1.Endpoints) {
				for i := range e.Subsets {
					for j := range e.Subsets[i].Ports {
						defaults.Set(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
					}
				}
			},
			Validate:       validateEndpoints,
			Warnings:       endpointsWarnings,
			ValidateUpdate: validateEndpointsUpdate,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(e *corev1.Endpoints, now time.Time) []any {
			return []any{e.Name, endpointsText(e), resources.Age(e.CreationTimestamp, now)}
		}),
	}
}

// shownEndpoints is how many endpoints a table lists before it only counts the rest.
const shownEndpoints = 3

func endpointsText(e *corev1.Endpoints) string {
	var shown []string
	count := 0
	add := func(s string) {
		if count < shownEndpoints {
			shown = append(shown, s)
		}
		count++
	}
	for i := range e.Subsets {
		ss := &e.Subsets[i]
		if len(ss.Ports) == 0 {
			for _, a := range ss.Addresses {
				add(a.IP)
			}
			continue
		}
		for _, p := range ss.Ports {
			for _, a := range ss.Addresses {
				add(joinHostPort(a.IP, p.Port))
			}
		}
	}
	if count == 0 {
		return none
	}
	s := strings.Join(shown, ",")
	if count > shownEndpoints {
		s += fmt.Sprintf(" + %d more...", count-shownEndpoints)
	}
	return s
}

func joinHostPort(ip string, port int32) string {
	if strings.Contains(ip, ":") {
		return fmt.Sprintf("[%s]:%d", ip, port)
	}
	return fmt.Sprintf("%s:%d", ip, port)
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		ss, at := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(ss.Addresses) == 0 && len(ss.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range ss.Addresses {
			errs = append(errs, validateEndpointAddress(&ss.Addresses[j], at.Child("addresses").Index(j))...)
		}
		for j := range ss.NotReadyAddresses {
			errs = append(errs, validateEndpointAddress(&ss.NotReadyAddresses[j],
				at.Child("notReadyAddresses").Index(j))...)
		}
		for j := range ss.Ports {
			errs = append(errs, validateEndpointPort(&ss.Ports[j], len(ss.Ports) > 1, at.Child("ports").Index(j))...)
		}
	}
	return errs
}

// validateEndpointsUpdate leaves subsets alone that did not change.
func validateEndpointsUpdate(obj, old *corev1.Endpoints) field.ErrorList {
	if apiequality.Semantic.DeepEqual(obj.Subsets, old.Subsets) {
		return nil
	}
	return validateEndpoints(obj)
}

// endpointsWarnings tells of addresses that are not as they would be shown.
func endpointsWarnings(e, _ *corev1.Endpoints) []string {
	var w []string
	for i := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		for j, a := range e.Subsets[i].Addresses {
			w = append(w, validate.IPWarnings(at.Child("addresses").Index(j).Child("ip"), a.IP)...)
		}
		for j, a := range e.Subsets[i].NotReadyAddresses {
			w = append(w, validate.IPWarnings(at.Child("notReadyAddresses").Index(j).Child("ip"), a.IP)...)
		}
	}
	return w
}

func validateEndpointAddress(a *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := validation.IsValidIPForLegacyField(path.Child("ip"), a.IP, true, nil)
	if a.Hostname != "" {
		errs = append(errs, validate.Invalid(path.Child("hostname"), a.Hostname,
			validation.IsDNS1123Label(a.Hostname))...)
	}
	if a.NodeName != nil {
		errs = append(errs, validate.Invalid(path.Child("nodeName"), *a.NodeName,
			validation.IsDNS1123Subdomain(*a.NodeName))...)
	}
	return append(errs, nonSpecialIP(a.IP, path.Child("ip"))...)
}

func validateEndpointPort(p *corev1.EndpointPort, needName bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case needName && p.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case p.Name != "":
		errs = append(errs, validate.Invalid(path.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
	}
	errs = append(errs, validate.Invalid(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, validate.OneOf(path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
		corev1.ProtocolUDP)...)
	if p.AppProtocol != nil {
		errs = append(errs, validate.QualifiedName(*p.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}
