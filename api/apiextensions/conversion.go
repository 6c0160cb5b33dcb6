package apiextensions

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReviewVersions are the versions of ConversionReview that webhooks are asked in, preferred first.
func ReviewVersions() []string { return []string{"v1", "v1beta1"} }

func validateConversion(c *apiextensionsv1.CustomResourceConversion, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	switch c.Strategy {
	case apiextensionsv1.NoneConverter:
		var errs field.ErrorList
		if c.Webhook != nil && c.Webhook.ClientConfig != nil {
			errs = append(errs, field.Forbidden(path.Child("webhookClientConfig"), "should not be set when strategy is not set to Webhook"))
		}
		if c.Webhook != nil && len(c.Webhook.ConversionReviewVersions) > 0 {
			errs = append(errs, field.Forbidden(path.Child("conversionReviewVersions"), "should not be set when strategy is not set to Webhook"))
		}
		return errs
	case apiextensionsv1.WebhookConverter:
		return validateWebhook(c.Webhook, path)
	case "":
		return field.ErrorList{field.Required(path.Child("strategy"), "")}
	}
	return field.ErrorList{field.NotSupported(path.Child("strategy"), c.Strategy, []string{string(apiextensionsv1.NoneConverter), string(apiextensionsv1.WebhookConverter)})}
}

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
		errs = append(errs, validateURL(*c.URL, at.Child("url"))...)
	default:
		errs = append(errs, validateService(c.Service, at.Child("service"))...)
	}
	return append(errs, validateReviewVersions(w.ConversionReviewVersions, path.Child("conversionReviewVersions"))...)
}

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
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(ReviewVersions(), ", ")))
	}
	return errs
}

func validateURL(text string, path *field.Path) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func validateService(s *apiextensionsv1.ServiceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if s.Port != nil {
		for _, msg := range validation.IsValidPortNum(int(*s.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), *s.Port, "port is not valid: "+msg))
		}
	}
	if s.Path == nil {
		return errs
	}
	return append(errs, validatePath(*s.Path, path.Child("path"))...)
}

func validatePath(p string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p == "" || p == "/" {
		return nil
	}
	if p == "//" {
		return field.ErrorList{field.Invalid(path, p, "segment[0] may not be empty")}
	}
	if !strings.HasPrefix(p, "/") {
		errs = append(errs, field.Invalid(path, p, "must start with a '/'"))
	}
	segments := strings.Split(strings.TrimSuffix(p[1:], "/"), "/")
	for i, s := range segments {
		if s == "" {
			errs = append(errs, field.Invalid(path, p, "segment["+strconv.Itoa(i)+"] may not be empty"))
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(s) {
			errs = append(errs, field.Invalid(path, p, "segment["+strconv.Itoa(i)+"]: "+msg))
		}
	}
	return errs
}
