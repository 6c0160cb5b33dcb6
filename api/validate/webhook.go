package validate

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WebhookURL checks the URL of a webhook: https://host[/path] and nothing else. Any host will do, as upstream.
func WebhookURL(path *field.Path, of string) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(of)
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

// WebhookService checks the Service of a webhook; urlPath may be nil.
func WebhookService(path *field.Path, namespace, name string, urlPath *string, port int32) field.ErrorList {
	errs := Required(path.Child("name"), name)
	errs = append(errs, Required(path.Child("namespace"), namespace)...)
	if bad := validation.IsValidPortNum(int(port)); bad != nil {
		errs = append(errs, field.Invalid(path.Child("port"), port, "port is not valid: "+strings.Join(bad, ", ")))
	}
	if urlPath == nil || *urlPath == "" || *urlPath == "/" {
		return errs
	}
	at := path.Child("path")
	if !strings.HasPrefix(*urlPath, "/") {
		errs = append(errs, field.Invalid(at, *urlPath, "must start with a '/'"))
	}
	for i, segment := range strings.Split(strings.TrimSuffix(*urlPath, "/")[1:], "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(at, *urlPath, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, bad := range validation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, *urlPath, fmt.Sprintf("segment[%d]: %s", i, bad)))
		}
	}
	return errs
}
