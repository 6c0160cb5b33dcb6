package describe

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestChunks: describe lists what belongs to an object in chunks, of 500 unless the user says another size.
func TestChunks(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default"},"spec":{"selector":{"a":"b"},"ports":[{"port":1}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"ds","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}}}}`,
	)
	for object, related := range map[string][]string{
		"namespace/default": {"resourcequotas", "limitranges"},
		"node/n":            {"pods", "events"},
		"service/s":         {"endpointslices", "events"},
		"deployment/d":      {"replicasets", "events"},
		"daemonset/ds":      {"pods", "events"},
	} {
		for flag, want := range map[string]string{"--chunk-size=500": "500", "": "500", "--chunk-size=7": "7",
			"--chunk-size=0": ""} {
			before := len(s.Log())
			if out, code := writetest.Run(t, NewCommand, s.URL, "",
				append([]string{"describe", object}, strings.Fields(flag)...)...); code != 0 {
				t.Fatalf("%s: %s", object, out)
			}
			var listed []string
			for _, line := range s.Log()[before:] {
				u, err := url.Parse(strings.Fields(line)[1])
				if err != nil {
					t.Fatal(err)
				}
				if plural := u.Path[strings.LastIndex(u.Path, "/")+1:]; slices.Contains(related, plural) {
					listed = append(listed, plural)
					if got := u.Query().Get("limit"); got != want {
						t.Errorf("%s %s lists with limit %q, want %q: %s", object, flag, got, want, line)
					}
				}
			}
			for _, plural := range related {
				if !slices.Contains(listed, plural) {
					t.Errorf("%s %s does not list %s but %v", object, flag, plural, listed)
				}
			}
		}
	}
}
