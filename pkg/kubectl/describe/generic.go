package describe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generic writes any object: its metadata, then every field under a name in words. It serves custom resources and kinds
// without a describer. managedFields and the parts that the head shows are left out (skip, by path).
func generic(d *describer, u *unstructured.Unstructured) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", u.GetName(), u.GetNamespace())
	d.labels(0, "Labels", u.GetLabels())
	d.annotations(0, u.GetAnnotations())
	skip := map[string]bool{"metadata.name": true, "metadata.namespace": true, "metadata.labels": true,
		"metadata.annotations": true, "metadata.managedFields": true}
	writeFields(d.writer, 0, u.Object, "", skip)
	return nil
}

// Fields come in the order of their names. The recursion is as deep as the object, which the API server bounds.
func writeFields(w *writer, level int, m map[string]any, path string, skip map[string]bool) {
	for _, k := range keys(m) {
		at := strings.TrimPrefix(path+"."+k, ".")
		if skip[at] {
			continue
		}
		switch v := m[k].(type) {
		case map[string]any:
			w.line(level, "%s:\n", words(k))
			writeFields(w, level+1, v, at, skip)
		case []any:
			w.line(level, "%s:\n", words(k))
			for _, e := range v {
				if object, ok := e.(map[string]any); ok {
					writeFields(w, level+1, object, at, skip)
				} else {
					w.line(level+1, "%v\n", e)
				}
			}
		default:
			w.line(level, "%s:\t%v\n", words(k), v)
		}
	}
}

// words makes "Lease Duration Seconds" of leaseDurationSeconds, "API Version" of apiVersion, "UID" of uid. A name that
// is not of letters and dashes alone stays as it is.
func words(field string) string {
	if strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		return field
	}
	parts := humps(field)
	for i, p := range parts {
		switch upper := strings.ToUpper(p); upper {
		case "API", "URL", "UID", "GUID":
			parts[i] = upper
		default:
			first, size := utf8.DecodeRuneInString(p)
			parts[i] = string(unicode.ToTitle(first)) + p[size:]
		}
	}
	return strings.Join(parts, " ")
}

// humps takes a name apart: small letters, with the capital before them; capitals; what is neither. Two capitals before
// small letters are of two words ("ABc": A, Bc), three or more are of one with them ("CIDRs", "APIUid"): so does
// upstream.
func humps(name string) []string {
	const small, capital, other = 0, 1, 2
	class := func(r rune) int {
		switch {
		case unicode.IsLower(r):
			return small
		case unicode.IsUpper(r):
			return capital
		}
		return other
	}
	var runs [][]rune
	last := -1
	for _, r := range name {
		if class(r) != last {
			runs = append(runs, nil)
		}
		last = class(r)
		runs[len(runs)-1] = append(runs[len(runs)-1], r)
	}
	var out []string
	for i := 0; i < len(runs); i++ {
		run := runs[i]
		if class(run[0]) == capital && i+1 < len(runs) && class(runs[i+1][0]) == small {
			if len(run) == 2 {
				out = append(out, string(run[:1]))
				run = run[1:]
			}
			i++
			run = append(run, runs[i]...)
		}
		out = append(out, string(run))
	}
	return out
}
