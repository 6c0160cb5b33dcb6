package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Bounds of what a pod may add to resolv.conf.
const (
	maxNameservers     = 3
	maxSearchPaths     = 32
	maxSearchListChars = 2048
)

func validateDNSConfig(c *corev1.PodDNSConfig, policy corev1.DNSPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy == corev1.DNSNone {
		if c == nil {
			return field.ErrorList{field.Required(path,
				fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", policy))}
		}
		if len(c.Nameservers) == 0 {
			return field.ErrorList{field.Required(path.Child("nameservers"),
				fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", policy))}
		}
	}
	if c == nil {
		return nil
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(path.Child("nameservers"), c.Nameservers,
			fmt.Sprintf("must not have more than %v nameservers", maxNameservers)))
	}
	for i, ns := range c.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("nameservers").Index(i), ns, true, nil)...)
	}
	if len(c.Searches) > maxSearchPaths {
		errs = append(errs, field.Invalid(path.Child("searches"), c.Searches,
			fmt.Sprintf("must not have more than %v search paths", maxSearchPaths)))
	}
	if n := len(strings.Join(c.Searches, " ")); n > maxSearchListChars {
		errs = append(errs, field.Invalid(path.Child("searches"), c.Searches,
			fmt.Sprintf("must not have more than %v characters (including spaces) in the search list",
				maxSearchListChars)))
	}
	for i, search := range c.Searches {
		if search == "." {
			continue
		}
		search = strings.TrimSuffix(search, ".")
		errs = append(errs, validate.Invalid(path.Child("searches").Index(i), search,
			validation.IsDNS1123SubdomainWithUnderscore(search))...)
	}
	for i, o := range c.Options {
		if o.Name == "" {
			errs = append(errs, field.Required(path.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}
