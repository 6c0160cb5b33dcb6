package structural

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SupportedFormat tells whether values are checked by a format; others are ignored.
func SupportedFormat(format string) bool { return slices.Contains(supportedFormats, format) }

// supportedFormats as of Kubernetes 1.36: https://kubernetes.io/docs/reference (JSONSchemaProps.format), and the names that its
// versions added to the ratcheted set (k8s-short-name, k8s-long-name).
var supportedFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
	"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time",
	"k8s-short-name", "k8s-long-name",
}

// UnknownFormats adds the formats of a schema that say nothing of values of their type. Without a type, as below anyOf, the formats
// of strings are known.
func UnknownFormats(p *props, to map[string]bool) {
	known := p.Format == ""
	switch p.Type {
	case "string", "":
		known = known || SupportedFormat(p.Format)
	case "integer":
		known = known || p.Format == "int32" || p.Format == "int64"
	case "number":
		known = known || p.Format == "float" || p.Format == "double"
	}
	if !known {
		to[p.Format] = true
	}
	each(p, nil, func(p *props, _ *field.Path) { UnknownFormats(p, to) })
}
