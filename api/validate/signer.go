package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LeastPodCertificateLifetime is the shortest lifetime of a pod's certificate, in seconds: an hour.
const LeastPodCertificateLifetime = 60 * 60

// PodCertificateLifetime bounds what a pod may ask a signer for, in seconds. Kubernetes' own signers give 24 hours at
// most, others 91 days.
func PodCertificateLifetime(signer string) (least, most int32) {
	const day = 24 * 60 * 60
	domain, _, _ := strings.Cut(signer, "/")
	if domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return LeastPodCertificateLifetime, day
	}
	return LeastPodCertificateLifetime, 91 * day
}

// SignerName checks the name of a signer of certificates, of the form "example.com/signer".
func SignerName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	// A domain, and a path that is a domain again.
	const maxDomain = validation.DNS1123SubdomainMaxLength
	const maxName = maxDomain + validation.DNS1123LabelMaxLength + 1 + 254
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name,
			"must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > maxDomain {
		errs = append(errs, field.TooLong(path, domain, maxDomain))
	}
	labels := strings.Split(domain, ".")
	errs = append(errs, validateParts(domain, labels, validation.IsDNS1123Label, path)...)
	if len(labels) < 2 {
		errs = append(errs, field.Invalid(path, domain,
			"should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, validateParts(rest, strings.Split(rest, "."), validation.IsDNS1123Subdomain, path)...)
	if len(name) > maxName {
		errs = append(errs, field.TooLong(path, name, maxName))
	}
	return errs
}

// validateParts checks the parts of a text between its dots, up to the first that is wrong.
func validateParts(whole string, parts []string, check func(string) []string, path *field.Path) field.ErrorList {
	for _, p := range parts {
		if msgs := check(p); len(msgs) > 0 {
			return field.ErrorList{field.Invalid(path, whole,
				fmt.Sprintf("validating label %q: %s", p, strings.Join(msgs, ",")))}
		}
	}
	return nil
}

// DomainAnnotations checks annotations whose keys must have a domain.
func DomainAnnotations(path *field.Path, all map[string]string) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		size += len(key) + len(all[key])
		if key == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		wrong := validation.IsQualifiedName(strings.ToLower(key))
		errs = append(errs, Invalid(path, key, wrong)...)
		if len(wrong) == 0 && !strings.Contains(key, "/") {
			errs = append(errs, field.Invalid(path, key, `must be a domain-prefixed key (such as "acme.io/foo")`))
		}
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		errs = append(errs, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}
