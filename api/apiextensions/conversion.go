package apiextensions

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/validate"
)

// ReviewVersions returns the versions of ConversionReview that the server can send to webhooks, the preferred one
// first.
func ReviewVersions() []string { return []string{"v1", "v1beta1"} }

// The paths in the errors are those of v1beta1 (webhookClientConfig), as upstream's.
func validateConversion(c *apiextensionsv1.CustomResourceConversion, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	switch c.Strategy {
	case apiextensionsv1.WebhookConverter:
		return validateWebhook(c.Webhook, path)
	case apiextensionsv1.NoneConverter:
	case "":
		errs = append(errs, field.Required(path.Child("strategy"), ""))
	default:
		errs = append(errs, field.NotSupported(path.Child("strategy"), c.Strategy,
			[]string{string(apiextensionsv1.NoneConverter), string(apiextensionsv1.WebhookConverter)}))
	}
	if c.Webhook != nil && c.Webhook.ClientConfig != nil {
		errs = append(errs, field.Forbidden(path.Child("webhookClientConfig"),
			"should not be set when strategy is not set to Webhook"))
	}
	if c.Webhook != nil && len(c.Webhook.ConversionReviewVersions) > 0 {
		errs = append(errs, field.Forbidden(path.Child("conversionReviewVersions"),
			"should not be set when strategy is not set to Webhook"))
	}
	return errs
}

// A missing webhook is treated as an empty one, so that each missing field is reported.
func validateWebhook(w *apiextensionsv1.WebhookConversion, path *field.Path) field.ErrorList {
	if w == nil {
		w = &apiextensionsv1.WebhookConversion{}
	}
	var errs field.ErrorList
	switch c, at := w.ClientConfig, path.Child("webhookClientConfig"); {
	case c == nil:
		errs = append(errs, field.Required(at, "required when strategy is set to Webhook"))
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(at, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, validate.WebhookURL(at.Child("url"), *c.URL)...)
	default:
		s := c.Service
		errs = append(errs, validate.WebhookService(at.Child("service"), s.Namespace, s.Name, s.Path,
			ptr.Deref(s.Port, 443))...)
	}
	return append(errs, validateReviewVersions(w.ConversionReviewVersions, path.Child("conversionReviewVersions"))...)
}

// At least one version must be known to this server. The others may be for later ones.
func validateReviewVersions(versions []string, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	seen, known := map[string]bool{}, false
	for i, v := range versions {
		if seen[v] {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		for _, msg := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, msg))
			break
		}
		seen[v] = true
		known = known || slices.Contains(ReviewVersions(), v)
	}
	if !known {
		errs = append(errs, field.Invalid(path, versions,
			"must include at least one of "+strings.Join(ReviewVersions(), ", ")))
	}
	return errs
}
