package describe

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generic writes any object: its metadata, then every field under a name in words.
func generic(d *describer, u *unstructured.Unstructured) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", u.GetName(), u.GetNamespace())
	d.labels(0, "Labels", u.GetLabels())
	d.annotations(0, u.GetAnnotations())
	skip := map[string]bool{"metadata.name": true, "metadata.namespace": true, "metadata.labels": true, "metadata.annotations": true, "metadata.managedFields": true}
	d.fields(0, u.Object, "", skip)
	return nil
}

func (d *describer) fields(level int, m map[string]any, path string, skip map[string]bool) {
	for _, k := range keys(m) {
		at := strings.TrimPrefix(path+"."+k, ".")
		if skip[at] {
			continue
		}
		switch v := m[k].(type) {
		case map[string]any:
			d.line(level, "%s:\n", words(k))
			d.fields(level+1, v, at, skip)
		case []any:
			d.line(level, "%s:\n", words(k))
			for _, e := range v {
				if object, ok := e.(map[string]any); ok {
					d.fields(level+1, object, at, skip)
				} else {
					d.line(level+1, "%v\n", e)
				}
			}
		default:
			d.line(level, "%s:\t%v\n", words(k), v)
		}
	}
}

// words makes "Lease Duration Seconds" of leaseDurationSeconds, "API Version" of apiVersion, "UID" of uid.
func words(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	parts := strings.Split(b.String(), " ")
	for i, p := range parts {
		switch p {
		case "api", "uid", "ip", "url", "id", "tls", "http":
			parts[i] = strings.ToUpper(p)
		default:
			if p != "" {
				parts[i] = strings.ToUpper(p[:1]) + p[1:]
			}
		}
	}
	return strings.Join(parts, " ")
}
