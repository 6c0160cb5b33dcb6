package manifests

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/admissionregistration"
	"bonsai/api/resources"
	"bonsai/api/resources/rows"
)

// heard records the objects that a plug-in receives, and those that are taken from it.
type heard struct{ all *[]string }

func (h heard) Put(key string, _ runtime.Object) { *h.all = append(*h.all, "put "+key) }
func (h heard) Delete(key string)                { *h.all = append(*h.all, "delete "+key) }

// config returns the configuration of a plug-in, and the list of what the plug-in receives.
func config(dir, what string) (Config, *[]string) {
	all := &[]string{}
	c := Config{Plugin: "ValidatingAdmissionPolicy", What: what, Path: dir, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry(), "me")}
	kinds := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	if what == "webhook" {
		c.Plugin, kinds = "ValidatingAdmissionWebhook", []string{"ValidatingWebhookConfiguration"}
	}
	served := rows.All()
	for _, kind := range kinds {
		i := slices.IndexFunc(served, func(r resources.Row) bool { return r.GVK.Kind == kind && r.GVK.Version == "v1" })
		c.Kinds = append(c.Kinds, Kind{Row: &served[i], Into: heard{all}})
	}
	return c, all
}

const group = "apiVersion: admissionregistration.k8s.io/v1\n"

// policy and binding are good but for their names.
func policy(name string) string {
	return group + "kind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n  matchConstraints:\n" +
		"    resourceRules:\n    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}\n" +
		"  validations: [{expression: 'true'}]\n"
}

func binding(name, of string) string {
	return group + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec: {policyName: " + of +
		", validationActions: [Deny]}\n"
}

func hook(client string) string {
	return group + "kind: ValidatingWebhookConfiguration\nmetadata: {name: w.static.k8s.io}\nwebhooks:\n" +
		"- name: a.b.c\n  clientConfig: " + client + "\n  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE]," +
		" resources: [services]}]\n  admissionReviewVersions: [v1]\n  sideEffects: None\n"
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBad: what a kube-apiserver v1.37.2 says to the same files; DIR is the directory.
func TestBad(t *testing.T) {
	t.Parallel()
	const a, x = "error loading DIR/a.yaml: ", "x.static.k8s.io"
	for _, c := range []struct{ what, text, more, want string }{
		{"policy", policy("x"), "", a + `"x" in file "DIR/a.yaml" must have a name ending with ".static.k8s.io"`},
		{"policy", policy(x), policy(x), `error loading DIR/b.yaml: duplicate name "x.static.k8s.io" found in file "DIR/b.yaml" (previously seen in "DIR/a.yaml")`},
		{"policy", policy(x) + "---\n" + policy(x), "", a + `duplicate name "x.static.k8s.io" found in file "DIR/a.yaml" (previously seen in "DIR/a.yaml")`},
		{"policy", policy(x) + "foo: bar\n", "", a + `strict decoding error: unknown field "foo"`},
		{"policy", "apiVersion: v1\nkind: ConfigMap\n", "", a + `no kind "ConfigMap" is registered for version "v1"`},
		{"policy", "kind: ConfigMap\n", "", a + `Object 'apiVersion' is missing in`},
		{"policy", "{}", "", a + `Object 'Kind' is missing in '{}'`},
		{"policy", strings.Replace(policy(x), "k8s.io/v1", "k8s.io/v1beta1", 1), "", a + `unsupported resource type *v1beta1.ValidatingAdmissionPolicy`},
		{"policy", hook("{url: 'https://x/y'}"), "", a + `unsupported resource type *v1.ValidatingWebhookConfiguration`},
		{"policy", strings.Replace(policy(x), "spec:\n", "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n", 1), "", a + `ValidatingAdmissionPolicy "x.static.k8s.io": spec.paramKind is not supported for static manifests`},
		{"policy", binding("b.static.k8s.io", x), "", `binding "b.static.k8s.io" references policy "x.static.k8s.io" which does not exist in the manifest directory`},
		{"policy", binding("b.static.k8s.io", "yy"), "", a + `binding "b.static.k8s.io": spec.policyName "yy" must end with ".static.k8s.io"`},
		{"policy", strings.Replace(binding("b.static.k8s.io", x), "spec: {", "spec: {paramRef: {name: x, parameterNotFoundAction: Deny}, ", 1), "", a + `binding "b.static.k8s.io": spec.paramRef is not supported for static manifests`},
		{"policy", policy("''"), "", a + `ValidatingAdmissionPolicy "": metadata.name: Required value: name or generateName is required`},
		{"webhook", hook("{url: 'http://x/y'}"), "", a + `ValidatingWebhookConfiguration "w.static.k8s.io": webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`},
		{"webhook", hook("{service: {name: x, namespace: ns}}"), "", a + `webhook "a.b.c" in "w.static.k8s.io" (file "DIR/a.yaml"): clientConfig.service is not supported for static manifests; use clientConfig.url instead`},
	} {
		dir := t.TempDir()
		write(t, dir, "a.yaml", c.text)
		if c.more != "" {
			write(t, dir, "b.yaml", c.more)
		}
		cfg, told := config(dir, c.what)
		want := strings.ReplaceAll(`failed to initialize admission plugin "`+cfg.Plugin+`": failed to load static `+c.what+
			` manifests from "DIR": `+c.want, "DIR", dir)
		if _, err := Load(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if len(*told) > 0 {
			t.Errorf("%s: the plug-in was told %v", c.want, *told)
		}
	}
}

// TestTooMuch: files that are too much together are refused, though each of them is small enough.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	comment := "#" + strings.Repeat("x", 1<<20-2) + "\n"
	for i := range maxBytes >> 20 {
		write(t, dir, fmt.Sprintf("%02d.yaml", i), comment)
	}
	cfg, _ := config(dir, "policy")
	if _, err := Load(cfg); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	write(t, dir, "zz.yaml", "#")
	const want = "the manifests have more than 16 MiB together"
	if _, err := Load(cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestReplaced: a file that takes the place of another one with the same size and time is seen.
func TestReplaced(t *testing.T) {
	t.Parallel()
	dir, aside := t.TempDir(), t.TempDir()
	at := time.Unix(1000, 0)
	for _, place := range []struct{ dir, name string }{{dir, "x.static.k8s.io"}, {aside, "y.static.k8s.io"}} {
		write(t, place.dir, "a.yaml", policy(place.name))
		if err := os.Chtimes(filepath.Join(place.dir, "a.yaml"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	cfg, told := config(dir, "policy")
	d, err := Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(aside, "a.yaml"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	*told = nil
	d.turn()
	want := []string{"put validatingadmissionpolicies/y.static.k8s.io",
		"delete validatingadmissionpolicies/x.static.k8s.io"}
	if !slices.Equal(*told, want) {
		t.Errorf("told %v, want %v", *told, want)
	}
}

// FuzzDecode: no text breaks the decoder, and what it takes is an object of a kind of the plug-in, with a name that the
// API cannot have.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{policy("x.static.k8s.io"), binding("b.static.k8s.io", "x.static.k8s.io"),
		hook("{url: 'https://x/y'}"), "apiVersion: v1\nkind: List\nitems: [{}, null]", "---\n---\n{}", "a: &a [*a]",
		strings.Replace(policy("x.static.k8s.io"), "adatingAdmissionPolicy", "", 1),
		group + "kind: ValidatingAdmissionPolicyList\nitems: [{metadata: {name: x}}]"} {
		f.Add([]byte(text))
	}
	var all []*Directory
	for _, what := range []string{"policy", "webhook"} {
		cfg, _ := config("", what)
		all = append(all, &Directory{Config: cfg})
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, d := range all {
			found, err := d.decode(file{path: "a.yaml", text: text})
			if err != nil {
				continue
			}
			for _, o := range found {
				if o.obj == nil || o.kind < 0 || o.kind >= len(d.Kinds) ||
					!strings.HasSuffix(o.name, admissionregistration.StaticSuffix) {
					t.Errorf("%+v", o)
				}
			}
		}
	})
}

// TestChanges: files that change are taken over, or not at all.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+
		strings.ReplaceAll(strings.TrimSpace(binding("b.static.k8s.io", "x.static.k8s.io")), "\n", "\n  ")+"\n")
	write(t, dir, "b.json", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"x.static.k8s.io"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}}`)
	write(t, dir, "c.txt", "not a manifest")
	cfg, told := config(dir, "policy")
	now := time.Now()
	cfg.Now = func() time.Time { return now }
	d, err := Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const x, b = "validatingadmissionpolicies/x.static.k8s.io", "validatingadmissionpolicybindings/b.static.k8s.io"
	said := func(want ...string) {
		t.Helper()
		d.turn()
		if !slices.Equal(*told, want) {
			t.Errorf("told %v, want %v", *told, want)
		}
		*told = nil
	}
	said("put "+x, "put "+b)
	said()
	write(t, dir, "a.yaml", "garbage")
	said()
	now = now.Add(2 * retryEvery)
	said() // tried again, in vain
	count := func(status string) float64 {
		return testutil.ToFloat64(cfg.Metrics.reloads.WithLabelValues(cfg.Metrics.id, cfg.Plugin, status))
	}
	if count("failure") != 2 || count("success") != 1 {
		t.Errorf("%v failures, %v successes", count("failure"), count("success"))
	}
	write(t, dir, "a.yaml", "")
	if err := os.Remove(filepath.Join(dir, "b.json")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "d.yml", policy("y.static.k8s.io"))
	said("put validatingadmissionpolicies/y.static.k8s.io", "delete "+b, "delete "+x)
	if count("success") != 2 || testutil.CollectAndCount(cfg.Metrics.inForce) != 1 {
		t.Errorf("%v successes, %d in force", count("success"), testutil.CollectAndCount(cfg.Metrics.inForce))
	}
}
