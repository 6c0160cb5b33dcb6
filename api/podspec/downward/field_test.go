package downward

import (
	"testing"
)

func TestSplitSubscript(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"metadata.labels['app']":   {"metadata.labels", "app"},
		"metadata.labels['a/b.c']": {"metadata.labels", "a/b.c"},
		"metadata.labels['']":      {"metadata.labels", ""},
		"metadata.labels":          {},
		"metadata.labels['app'":    {},
		"['app']":                  {},
	} {
		base, key, ok := splitSubscript(path)
		if ok != (want[0] != "") || ok && [2]string{base, key} != want {
			t.Errorf("%s: got %q %q %t", path, base, key, ok)
		}
	}
}
