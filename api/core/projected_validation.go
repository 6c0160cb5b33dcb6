package core

import (
	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
		errs = append(errs, validateProjection(&s.Sources[i], paths, path.Child("sources").Index(i))...)
	}
	return errs
}

func validateProjection(s *corev1.VolumeProjection, paths sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	check := func(name string, isSet bool, validate func(*field.Path) field.ErrorList) {
		if !isSet {
			return
		}
		n++
		if n > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 volume type"))
			return
		}
		errs = append(errs, validate(path.Child(name))...)
	}
	check("secret", s.Secret != nil, func(p *field.Path) field.ErrorList {
		return append(required(p.Child("name"), s.Secret.Name), validateProjectedItems(s.Secret.Items, paths, p)...)
	})
	check("configMap", s.ConfigMap != nil, func(p *field.Path) field.ErrorList {
		return append(required(p.Child("name"), s.ConfigMap.Name), validateProjectedItems(s.ConfigMap.Items, paths, p)...)
	})
	check("downwardAPI", s.DownwardAPI != nil, func(p *field.Path) field.ErrorList {
		errs := validateDownwardFiles(s.DownwardAPI.Items, p)
		for i := range s.DownwardAPI.Items {
			errs = append(errs, claimPath(s.DownwardAPI.Items[i].Path, paths, path)...)
		}
		return errs
	})
	check("serviceAccountToken", s.ServiceAccountToken != nil, func(p *field.Path) field.ErrorList {
		return append(validateTokenProjection(s.ServiceAccountToken, p), claimPath(s.ServiceAccountToken.Path, paths, p)...)
	})
	check("clusterTrustBundle", s.ClusterTrustBundle != nil, func(p *field.Path) field.ErrorList {
		return append(validateTrustBundle(s.ClusterTrustBundle, p), claimPath(s.ClusterTrustBundle.Path, paths, p)...)
	})
	check("podCertificate", s.PodCertificate != nil, func(p *field.Path) field.ErrorList {
		return required(p.Child("signerName"), s.PodCertificate.SignerName)
	})
	if n == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}

func validateProjectedItems(items []corev1.KeyToPath, paths sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateKeysToPaths(items, path.Child("items"))
	for i := range items {
		errs = append(errs, claimPath(items[i].Path, paths, path)...)
	}
	return errs
}

// claimPath takes a path for one source.
func claimPath(p string, paths sets.Set[string], path *field.Path) field.ErrorList {
	if p == "" {
		return nil
	}
	if paths.Has(p) {
		return field.ErrorList{field.Invalid(path, p, "conflicting duplicate paths")}
	}
	paths.Insert(p)
	return nil
}

func validateTokenProjection(t *corev1.ServiceAccountTokenProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.ExpirationSeconds == nil {
		errs = append(errs, field.Required(path.Child("expirationSeconds"), ""))
	} else {
		switch n := *t.ExpirationSeconds; {
		case n < minTokenSeconds:
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), n, "may not specify a duration less than 10 minutes"))
		case n > maxTokenSeconds:
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), n, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	if t.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validateLocalNonReservedPath(t.Path, path.Child("path"))...)
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
		errs = append(errs, required(path.Child("name"), *b.Name)...)
		if b.LabelSelector != nil {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	}
	if b.SignerName != nil {
		errs = append(errs, required(path.Child("signerName"), *b.SignerName)...)
		errs = append(errs, metavalidation.ValidateLabelSelector(b.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	}
	if b.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validateLocalNonReservedPath(b.Path, path.Child("path"))...)
}
