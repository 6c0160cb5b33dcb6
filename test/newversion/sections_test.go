package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSections: a whole list, from two small releases and our own repository's records, with programs that print a
// --help.
func TestSections(t *testing.T) {
	t.Parallel()
	const roles = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/"
	role := func(name string) string { return "items: [{kind: Role, metadata: {namespace: x, name: " + name + "}}]" }
	both := map[string]string{
		"api/discovery/api__v1.json":            `{"groupVersion":"v1","resources":[{"name":"a","kind":"A"}]}`,
		roles + "cluster-roles.yaml":            role("a"),
		roles + "cluster-role-bindings.yaml":    role("b"),
		roles + "controller-roles.yaml":         role("c"),
		roles + "controller-role-bindings.yaml": role("d"),
		roles + "namespace-roles.yaml":          role("e"),
		roles + "namespace-role-bindings.yaml":  role("f"),
		featureLists + "feature_list.md":        "| Feature | Dependencies |\n|--|--|\n| A | B |\n",
	}
	discovery := func(version string) string {
		return `{"items":[{"metadata":{"name":"g"},"versions":[{"version":"` + version +
			`","resources":[{"resource":"as","scope":"Cluster","responseKind":{"kind":"A"},"verbs":["get"]}]}]}]}`
	}
	current := releaseOf("v1.98.3", both, map[string]string{
		"go.mod":                                     "go 1.26.0\n",
		"api/discovery/aggregated_v2.json":           discovery("v1beta1"),
		"api/openapi-spec/swagger.json":              `{"definitions":{"io.k8s.api.g.v1.T":{}}}`,
		featureLists + "versioned_feature_list.yaml": "- {name: A, versionedSpecs: [{preRelease: Alpha, version: '1.98'}]}",
		metricLists()[1]:                             "- {name: a, type: Gauge, stabilityLevel: ALPHA}",
		"test/conformance/testdata/conformance.yaml": "- {codename: 'Old [Serial] spec'}\n- {codename: Other}",
	})
	next := releaseOf("v1.99.2", both, map[string]string{
		"go.mod":                           "go 1.27.0\n",
		"CHANGELOG/CHANGELOG-1.99.md":      "# v1.99.0\n### Deprecation\n- one\n",
		"api/discovery/aggregated_v2.json": discovery("v1"),
		"api/openapi-spec/swagger.json": `{"definitions":{"io.k8s.api.g.v1.T":{"properties":
			{"f":{"type":"string","description":"Needs the feature gate Bee."}}}}}`,
		featureLists + "versioned_feature_list.yaml": "- {name: A, versionedSpecs: [{preRelease: Alpha, version: '1.98'}]}\n" +
			"- {name: Bee, versionedSpecs: [{preRelease: Beta, default: true, version: '1.99'}]}",
		metricLists()[0]: "- {name: b, type: Gauge, stabilityLevel: ALPHA}",
		"test/conformance/testdata/conformance.yaml": "- {codename: 'Old spec [Serial]'}\n- {codename: New}",
		roles + "namespace-roles.yaml":               role("g"),
	})
	root := fstest.MapFS{"go.mod": {Data: []byte("module ours\n\ngo 1.26.0\n")},
		ourFlags + "/kube-apiserver.txt": {Data: []byte("a string\nb bool\n")},
		ourGates:                         {Data: []byte("A ALPHA false\n")},
		ourDiscovery + "/api.json":       {Data: []byte(discovery("v2"))},
		ourDiscovery + "/apis.json":      {Data: []byte(discovery("v3"))}}
	binaries := t.TempDir()
	program := "#!/bin/sh\n[ $1 = --help ] || exec echo Kubernetes v1.99.2\necho '      --a int   text'\necho '      --enable x   on (B). Comma-delimited list of admission " +
		"plugins: A, B. The order'\n"
	if err := os.WriteFile(filepath.Join(binaries, "kube-apiserver"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	sections, err := run{binaries: binaries}.sections(t.Context(), root, current, next)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, s := range sections {
		got[s.title] = s.tasks
	}
	for title, want := range map[string][]string{
		"Version": {`Set Minor to "99", Patch to "2" and Previous to the minor version before in api/kubeversion/kubeversion.go`,
			`Set suiteVersion to "v1.99.2" in test/conformance/build.go`,
			"Build with Go 1.27, which the release's modules need; our go.mod has 1.26"},
		"Release notes": {`Read "Deprecation" of v1.99.0: lines 2 to 3 of CHANGELOG/CHANGELOG-1.99.md`},
		"Resources": {"Serve `g/v1 as`: `Cluster A: get`",
			"Remove `g/v1beta1` from `notBuilt` of pkg/apiserver/runtimeconfig"},
		"Fields":        {"Add `g.v1.T.f`: `string` (gate Bee BETA on)"},
		"Feature gates": {"Add the gate `Bee`: `BETA on`"},
		"Metrics":       {"Add `b`: `gauge ALPHA`", "Remove `a`"},
		"Conformance specs": {"Forget `Other`", "Pass `New`", "Look for names of specs in expressions (FOCUS, " +
			"test/conformance/missing.go): 1 have their labels in another place, such as `Old [Serial] spec` → " +
			"`Old spec [Serial]`"},
		"Default roles": {"Add `Role x/g`"},
		"Flags": {"kube-apiserver: add `--enable`: `x`", "kube-apiserver: change `--a`: `string` → `int`",
			"kube-apiserver: remove `--b`"},
	} {
		if !slices.Equal(got[title], want) {
			t.Errorf("%s:\n%s\nwant:\n%s", title, strings.Join(got[title], "\n"), strings.Join(want, "\n"))
		}
	}
	if plugins := got["Admission plug-ins"]; !slices.Contains(plugins, "Add `A`: `off`") ||
		!slices.Contains(plugins, "Remove `LimitRanger`") {
		t.Errorf("admission plug-ins: %q", plugins)
	}
	other := release{version: "v1.99.3", files: next.files}
	if _, err := (run{binaries: binaries}).sections(t.Context(), root, current, other); err == nil ||
		!strings.Contains(err.Error(), `is "Kubernetes v1.99.2", not Kubernetes v1.99.3`) {
		t.Errorf("programs of another release: %v", err)
	}
	delete(next.files.(fstest.MapFS), "api/openapi-spec/swagger.json")
	if _, err := (run{}).sections(t.Context(), root, current, next); err == nil ||
		!strings.Contains(err.Error(), "Kubernetes v1.99.2: open api/openapi-spec/swagger.json") {
		t.Errorf("a missing file: %v", err)
	}
}

// releaseOf makes a release of files; those of own replace those of both.
func releaseOf(version string, both, own map[string]string) release {
	files := fstest.MapFS{}
	for _, from := range []map[string]string{both, own} {
		for path, data := range from {
			files[path] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	return release{version: version, files: files}
}
