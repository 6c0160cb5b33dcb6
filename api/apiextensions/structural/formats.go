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

// knownFormat tells whether a format says something of values of a type; others are ignored. Without a type, as below anyOf, the formats of
// strings are known.
func knownFormat(kind, format string) bool {
	switch kind {
	case "string", "":
		return SupportedFormat(format)
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}

// UnknownFormats adds the formats of a schema that are ignored.
func UnknownFormats(p *props, to map[string]bool) {
	if p.Format != "" && !knownFormat(p.Type, p.Format) {
		to[p.Format] = true
	}
	each(p, nil, func(p *props, _ *field.Path) { UnknownFormats(p, to) })
}
