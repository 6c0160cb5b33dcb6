package structural

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// supportedFormat reports whether values are validated against a format. Other formats are ignored.
func supportedFormat(format string) bool { return slices.Contains(supportedFormats, format) }

// supportedFormats are those of Kubernetes 1.36: the formats of strings in the API reference
// (https://kubernetes.io/docs/reference, JSONSchemaProps.format), and the names that later versions added. Other
// formats are no error: a definition may be written for a later version of Kubernetes, which validates more.
var supportedFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac",
	"uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn",
	"hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time",
	"k8s-short-name", "k8s-long-name",
}

// knownFormat reports whether a format is one that values of a type can have. Other formats are ignored. A schema
// without a type, as below anyOf, has the formats of strings.
func knownFormat(kind, format string) bool {
	switch kind {
	case "string", "":
		return supportedFormat(format)
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}

// UnknownFormats adds to a set the formats in p and below that are ignored. The API server warns a client about them
// when it writes a definition (warnings.go), because they look like a constraint and are none.
func UnknownFormats(p *props, to map[string]bool) {
	if p.Format != "" && !knownFormat(p.Type, p.Format) {
		to[p.Format] = true
	}
	each(p, nil, func(p *props, _ *field.Path) { UnknownFormats(p, to) })
}
