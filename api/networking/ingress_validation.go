package networking

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"bonsai/api/validate"
)

func validateIngress(i *networkingv1.Ingress) field.ErrorList {
	return validateIngressSpec(&i.Spec, true, field.NewPath("spec"))
}

// validateIngressUpdate checks an update. It checks the names of Secrets only if all the old ones were valid:
// Kubernetes did not check them in the past, and an Ingress with an invalid one must stay updatable.
func validateIngressUpdate(obj, old *networkingv1.Ingress) field.ErrorList {
	checked := !slices.ContainsFunc(old.Spec.TLS, func(tls networkingv1.IngressTLS) bool {
		return len(secretName(tls.SecretName, nil)) > 0
	})
	return validateIngressSpec(&obj.Spec, checked, field.NewPath("spec"))
}

// secretName checks the name of a Secret. It may be empty.
func secretName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return validate.Invalid(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// validateIngressSpec checks the names of Secrets only if secrets.
func validateIngressSpec(s *networkingv1.IngressSpec, secrets bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		errs = append(errs, field.Invalid(at, s.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if s.DefaultBackend != nil {
		errs = append(errs, validateBackend(s.DefaultBackend, at.Child("defaultBackend"))...)
	}
	for i := range s.Rules {
		errs = append(errs, validateRule(&s.Rules[i], at.Child("rules").Index(i))...)
	}
	for i, tls := range s.TLS {
		tlsAt := at.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			errs = append(errs, validateHost(host, tlsAt.Child("hosts").Index(j))...)
		}
		if secrets {
			errs = append(errs, secretName(tls.SecretName, tlsAt.Child("secretName"))...)
		}
	}
	if s.IngressClassName != nil {
		errs = append(errs, validate.Invalid(at.Child("ingressClassName"), *s.IngressClassName,
			apivalidation.NameIsDNSSubdomain(*s.IngressClassName, false))...)
	}
	return errs
}

// validateHost checks a DNS name. Its first label may be a wildcard.
func validateHost(host string, at *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return validate.Invalid(at, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return validate.Invalid(at, host, validation.IsDNS1123Subdomain(host))
}

// validateRule checks one rule. Both host and HTTP may be left out, but HTTP needs at least one path.
func validateRule(r *networkingv1.IngressRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Host != "" {
		if netutils.ParseIPSloppy(r.Host) != nil {
			errs = append(errs, field.Invalid(at.Child("host"), r.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, validateHost(r.Host, at.Child("host"))...)
	}
	if r.HTTP == nil {
		return errs
	}
	paths := at.Child("http", "paths")
	if len(r.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range r.HTTP.Paths {
		errs = append(errs, validateHTTPPath(&r.HTTP.Paths[i], paths.Index(i))...)
	}
	return errs
}

// validateHTTPPath: without a type nothing else is said of a path.
func validateHTTPPath(p *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		errs = validateMatchedPath(p.Path, at.Child("path"))
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("pathType"), *p.PathType,
			[]networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific,
				networkingv1.PathTypePrefix}))
	}
	return append(errs, validateBackend(&p.Backend, at.Child("backend"))...)
}

// validateMatchedPath checks a path that is compared with that of requests, which must have one way to be written.
func validateMatchedPath(p string, at *field.Path) field.ErrorList {
	if !strings.HasPrefix(p, "/") {
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path")}
	}
	var errs field.ErrorList
	for _, bad := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(p, bad) {
			errs = append(errs, field.Invalid(at, p, "must not contain '"+bad+"'"))
		}
	}
	for _, bad := range []string{"/..", "/."} {
		if strings.HasSuffix(p, bad) {
			errs = append(errs, field.Invalid(at, p, "cannot end with '"+bad+"'"))
		}
	}
	return errs
}

func validateBackend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(at, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		r := at.Child("resource")
		return validateReference(b.Resource.APIGroup, b.Resource.Kind, b.Resource.Name, r)
	case b.Service == nil:
		return field.ErrorList{field.Invalid(at, "", "resource or service backend is required")}
	}
	return validateServiceBackend(b.Service, at)
}

func validateServiceBackend(s *networkingv1.IngressServiceBackend, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("service", "name"), ""))
	} else {
		errs = append(errs, validate.Invalid(at.Child("service", "name"), s.Name,
			apivalidation.NameIsDNSLabel(s.Name, false))...)
	}
	port := at.Child("service", "port")
	switch hasName, hasNumber := s.Port.Name != "", s.Port.Number != 0; {
	case hasName && hasNumber:
		errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
	case hasName:
		errs = append(errs, validate.Invalid(port.Child("name"), s.Port.Name,
			validation.IsValidPortName(s.Port.Name))...)
	case hasNumber:
		errs = append(errs, validate.Invalid(port.Child("number"), s.Port.Number,
			validation.IsValidPortNum(int(s.Port.Number)))...)
	default:
		errs = append(errs, field.Required(at, "port name or number is required"))
	}
	return errs
}

// validateReference checks the parts of a reference to any object.
func validateReference(group *string, kind, name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = append(errs, validate.Invalid(at.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
	}
	errs = append(errs, requiredSegment(kind, at.Child("kind"))...)
	return append(errs, requiredSegment(name, at.Child("name"))...)
}

// requiredSegment checks a word that can be a part of a path.
func requiredSegment(word string, at *field.Path) field.ErrorList {
	if word == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return validate.Invalid(at, word, path.IsValidPathSegmentName(word))
}

func validateIngressStatusUpdate(obj, old *networkingv1.Ingress) field.ErrorList {
	return validateLoadBalancer(&obj.Status.LoadBalancer, &old.Status.LoadBalancer,
		field.NewPath("status", "loadBalancer"))
}

// validateLoadBalancer: addresses that were there before may stay as they are.
func validateLoadBalancer(s, old *networkingv1.IngressLoadBalancerStatus, at *field.Path) field.ErrorList {
	var had []string
	for _, p := range old.Ingress {
		had = append(had, p.IP)
	}
	var errs field.ErrorList
	for i, p := range s.Ingress {
		point := at.Child("ingress").Index(i)
		if p.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(point.Child("ip"), p.IP, true, had)...)
		}
		if p.Hostname == "" {
			continue
		}
		errs = append(errs, validate.Invalid(point.Child("hostname"), p.Hostname,
			validation.IsDNS1123Subdomain(p.Hostname))...)
		if netutils.ParseIPSloppy(p.Hostname) != nil {
			errs = append(errs, field.Invalid(point.Child("hostname"), p.Hostname,
				"must be a DNS name, not an IP address"))
		}
	}
	return errs
}
