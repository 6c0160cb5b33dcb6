package volumes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Bounds of a projected service account token's lifetime, in seconds.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

// validateProjected checks a volume made of several sources: one per entry, and no two for the same path.
func validateProjected(s *corev1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := validateMode(s.DefaultMode, path.Child("defaultMode"))
	paths := sets.New[string]()
	for i := range s.Sources {
		errs = append(errs, validateProjection(&s.Sources[i], paths, path.Child("sources").Index(i), path)...)
	}
	return errs
}

func validateProjection(s *corev1.VolumeProjection, paths sets.Set[string], path, volume *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	check := func(name string, isSet bool, validate func(*field.Path) field.ErrorList) {
		if !isSet {
			return
		}
		n++
		if n > 1 {
			errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type per source"))
		}
		errs = append(errs, validate(path.Child(name))...)
	}
	check("secret", s.Secret != nil, func(p *field.Path) field.ErrorList {
		return append(validate.Required(p.Child("name"), s.Secret.Name),
			validateProjectedItems(s.Secret.Name, s.Secret.Items, paths, p, volume)...)
	})
	check("configMap", s.ConfigMap != nil, func(p *field.Path) field.ErrorList {
		return append(validate.Required(p.Child("name"), s.ConfigMap.Name),
			validateProjectedItems(s.ConfigMap.Name, s.ConfigMap.Items, paths, p, volume)...)
	})
	check("downwardAPI", s.DownwardAPI != nil, func(p *field.Path) field.ErrorList {
		errs := validateDownwardFiles(s.DownwardAPI.Items, p)
		for i := range s.DownwardAPI.Items {
			errs = append(errs, claimPath(s.DownwardAPI.Items[i].Path, s.DownwardAPI.Items[i].Path, paths, volume)...)
		}
		return errs
	})
	check("serviceAccountToken", s.ServiceAccountToken != nil, func(p *field.Path) field.ErrorList {
		return validateTokenProjection(s.ServiceAccountToken, p, volume)
	})
	check("clusterTrustBundle", s.ClusterTrustBundle != nil, func(p *field.Path) field.ErrorList {
		return append(validateTrustBundle(s.ClusterTrustBundle, p),
			claimPath(s.ClusterTrustBundle.Path, s.ClusterTrustBundle.Path, paths, volume)...)
	})
	check("podCertificate", s.PodCertificate != nil, func(p *field.Path) field.ErrorList {
		return validatePodCertificate(s.PodCertificate, paths, p, volume)
	})
	return errs
}

func validateProjectedItems(name string, items []corev1.KeyToPath, paths sets.Set[string], path,
	volume *field.Path) field.ErrorList {
	errs := validateKeysToPaths(items, path.Child("items"))
	for i := range items {
		errs = append(errs, claimPath(items[i].Path, name, paths, volume)...)
	}
	return errs
}

// claimPath takes a path for a source, which an error names.
func claimPath(p, source string, paths sets.Set[string], volume *field.Path) field.ErrorList {
	if p == "" {
		return nil
	}
	if paths.Has(p) {
		return field.ErrorList{field.Invalid(volume, source, "conflicting duplicate paths")}
	}
	paths.Insert(p)
	return nil
}

func validateTokenProjection(t *corev1.ServiceAccountTokenProjection, path, volume *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.ExpirationSeconds == nil {
		errs = append(errs, field.Required(path.Child("expirationSeconds"), ""))
	} else {
		switch n := *t.ExpirationSeconds; {
		case n < minTokenSeconds:
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), n,
				"may not specify a duration less than 10 minutes"))
		case n > maxTokenSeconds:
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), n,
				"may not specify a duration larger than 2^32 seconds"))
		}
	}
	if t.Path == "" {
		return append(errs, field.Required(volume.Child("path"), ""))
	}
	return append(errs, validateLocalNonReservedPath(t.Path, volume.Child("path"))...)
}

func validateTrustBundle(b *corev1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case b.Name != nil && b.SignerName != nil:
		errs = append(errs, field.Invalid(path, b, "only one of name and signerName may be used"))
	case b.Name == nil && b.SignerName == nil:
		errs = append(errs, field.Required(path, "either name or signerName must be specified"))
	}
	if b.Name != nil {
		if *b.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be a valid object name"))
		}
		for _, wrong := range apivalidation.NameIsDNSSubdomain(strings.ReplaceAll(*b.Name, ":", "."), false) {
			errs = append(errs, field.Invalid(path.Child("name"), *b.Name,
				"not a valid clustertrustbundlename: "+wrong))
		}
		if b.LabelSelector != nil {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), b.LabelSelector,
				"labelSelector must be unset if name is specified"))
		}
	}
	if b.SignerName != nil {
		if *b.SignerName == "" {
			errs = append(errs, field.Required(path.Child("signerName"), "must be a valid signer name"))
		}
		errs = append(errs, validate.SignerName(path.Child("signerName"), *b.SignerName)...)
		errs = append(errs, validate.LabelSelector(b.LabelSelector, path.Child("labelSelector"))...)
	}
	if b.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validateLocalNonReservedPath(b.Path, path.Child("path"))...)
}

// validatePodCertificate checks what a pod asks a signer for, and where it wants it.
func validatePodCertificate(c *corev1.PodCertificateProjection, paths sets.Set[string],
	path, volume *field.Path) field.ErrorList {
	errs := validate.SignerName(path.Child("signerName"), c.SignerName)
	if known := []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}; !slices.Contains(known,
		c.KeyType) {
		errs = append(errs, field.NotSupported(path.Child("keyType"), c.KeyType, known))
	}
	least, most := validate.PodCertificateLifetime(c.SignerName)
	if asked := c.MaxExpirationSeconds; asked != nil {
		lifetime := path.Child("maxExpirationSeconds")
		switch {
		case *asked < least:
			errs = append(errs, field.Invalid(lifetime, *asked,
				fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", least)))
		case *asked > most:
			errs = append(errs, field.Invalid(lifetime, *asked,
				fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
		}
	}
	files := []struct{ field, path string }{{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath},
		{"certificateChainPath", c.CertificateChainPath}}
	none := true
	for _, f := range files {
		if f.path == "" {
			continue
		}
		none = false
		errs = append(errs, validateLocalNonReservedPath(f.path, path.Child(f.field))...)
	}
	if none {
		errs = append(errs, field.Required(path,
			"specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	for _, f := range files {
		errs = append(errs, claimPath(f.path, f.path, paths, volume)...)
	}
	return append(errs, validate.DomainAnnotations(path.Child("userAnnotations"), c.UserAnnotations)...)
}
