package diff

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/write"
	"bonsai/pkg/kubectl/write/writetest"
)

func configMap(value string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"` + value + `"}}`
}

func TestDiff(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"a":"1","other":"kept"}}`)
	for _, c := range []struct {
		name, file string
		code       int
		has, hasNo []string
	}{
		{"a change", configMap("2"), 1,
			[]string{"LIVE-", "MERGED-", "v1.ConfigMap.default.c", "\n-  a: \"1\"\n", "\n+  a: \"2\"\n"},
			[]string{"-  other"}},
		{"a new object", strings.Replace(configMap("1"), `"c"`, `"new"`, 1), 1, []string{"+  a: \"1\"", "+  name: new"},
			[]string{"annotations"}},
		{"a note of what was applied",
			strings.Replace(configMap("1"), `"metadata":{`,
				`"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x"},`, 1), 0, nil,
			[]string{"LIVE"}},
		{"nonsense", `{"kind":`, 2, nil, nil},
	} {
		got, code := writetest.Run(t, NewCommand, s.URL, c.file, "diff", "-f", "-")
		if code != c.code {
			t.Errorf("%s: code %d, not %d: %s", c.name, code, c.code, got)
		}
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, got)
			}
		}
		for _, not := range c.hasNo {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q in\n%s", c.name, not, got)
			}
		}
	}
	for _, args := range [][]string{{"diff", "--nope"}, {"diff", "--field-manager"},
		{"diff", "--concurrency", "x", "-f", "-"}, {"diff", "-f", "-", "extra"}, {"diff"}} {
		if got, code := writetest.Run(t, NewCommand, s.URL, configMap("1"), args...); code != 2 {
			t.Errorf("%v: code %d, want 2, which says that no comparison was made: %s", args, code, got)
		}
	}
	if o := s.Object("/api/v1/namespaces/default/configmaps/c"); !strings.Contains(o, `"a":"1"`) {
		t.Errorf("the object was changed: %s", o)
	}
}

// TestConcurrency: the number of objects asked for at once changes nothing of what is shown; the first error ends it.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	var files []string
	for i := range 20 {
		files = append(files, strings.Replace(configMap("1"), `"c"`, fmt.Sprintf(`"c%d"`, i), 1))
	}
	show := func(n string) {
		got, code := writetest.Run(t, NewCommand, s.URL, strings.Join(files, "\n---\n"), "diff", "-f", "-",
			"--concurrency", n)
		if code != 1 || strings.Count(got, "+kind: ConfigMap\n") != len(files) {
			t.Errorf("--concurrency %s: code %d, %d objects:\n%s", n, code, strings.Count(got, "+kind: ConfigMap\n"),
				got)
		}
	}
	for _, n := range []string{"-1", "0", "1", "8"} {
		show(n)
	}
	files[7] = strings.Replace(files[7], "ConfigMap", "Nonsense", 1)
	if got, code := writetest.Run(t, NewCommand, s.URL, strings.Join(files, "\n---\n"), "diff", "-f", "-",
		"--concurrency", "8"); code != 2 {
		t.Errorf("a kind that is unknown: code %d: %s", code, got)
	}
}

// TestServerSide: the server is asked what applying would make of the object.
func TestServerSide(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"a":"1"}}`)
	got, code := writetest.Run(t, NewCommand, s.URL, configMap("2"), "diff", "-f", "-", "--server-side",
		"--force-conflicts")
	if code != 1 || !strings.Contains(got, "\n-  a: \"1\"\n+  a: \"2\"\n") {
		t.Errorf("code %d: %s", code, got)
	}
	if log := strings.Join(s.Log(),
		"\n"); !strings.Contains(log,
		"PATCH /api/v1/namespaces/default/configmaps/c?dryRun=All&fieldManager=kubectl&force=true ") {
		t.Errorf("requests:\n%s", log)
	}
	if got, code := writetest.Run(t, NewCommand, s.URL, strings.Replace(configMap("1"), `"c"`, `"new"`, 1), "diff",
		"-f", "-", "--server-side"); code != 1 || !strings.Contains(got, "+  name: new") {
		t.Errorf("a new object: code %d: %s", code, got)
	}
	s.Conflict = "taken"
	if got, code := writetest.Run(t, NewCommand, s.URL, configMap("2"), "diff", "-f", "-",
		"--server-side"); code != 2 || got != "Error from server (Conflict): taken\n" {
		t.Errorf("a conflict: code %d: %q", code, got)
	}
	if got, code := writetest.Run(t, NewCommand, s.URL, configMap("2"), "diff", "-f", "-",
		"--force-conflicts"); code != 2 || got != "error: --force-conflicts only works with --server-side\n" {
		t.Errorf("code %d: %q", code, got)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	secret := func(data map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"data": data}}
		u.SetAnnotations(map[string]string{write.LastAppliedAnnotation: "secret"})
		return u
	}
	before := secret(map[string]any{"same": "x", "changed": "x", "gone": "x"})
	after := secret(map[string]any{"same": "x", "changed": "y", "new": "y"})
	mask(before, after)
	want := map[string][2]string{"same": {"***", "***"}, "changed": {"*** (before)", "*** (after)"},
		"gone": {"***", ""}, "new": {"", "***"}}
	for key, w := range want {
		for i, u := range []*unstructured.Unstructured{before, after} {
			if got, _ := values(u, "data")[key].(string); got != w[i] {
				t.Errorf("%s: %q, not %q", key, got, w[i])
			}
		}
	}
	if a := after.GetAnnotations()[write.LastAppliedAnnotation]; a != "***" {
		t.Errorf("the annotation is %q", a)
	}
	mask(nil, after)
}
