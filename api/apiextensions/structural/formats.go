package structural

import "slices"

// SupportedFormat tells whether values are checked by a format; others are ignored.
func SupportedFormat(format string) bool { return slices.Contains(supportedFormats, format) }

// supportedFormats as of Kubernetes 1.36: https://kubernetes.io/docs/reference (JSONSchemaProps.format), and the names that its
// versions added to the ratcheted set (k8s-short-name, k8s-long-name).
var supportedFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
	"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time",
	"k8s-short-name", "k8s-long-name",
}
