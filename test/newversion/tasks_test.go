package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/util/version"

	"bonsai/pkg/apiserver/admission"
)

func TestGateTasks(t *testing.T) {
	t.Parallel()
	ours := facts{"Default": "ALPHA off", "Stage": "BETA on", "Gone": "GA on", "Gap": "GA on", "Needs": "GA on"}
	old := facts{"Default": "ALPHA off", "Stage": "BETA on", "Gone": "GA on", "Gap": "GA on locked", "Needs": "GA on"}
	all := facts{"Default": "BETA on", "Stage": "GA on locked", "New": "ALPHA off", "Gap": "GA on locked", "Needs": "GA on"}
	got, known := gateTasks(ours, old, all, facts{"Gone": "X"}, facts{"New": "Stage", "Needs": "New"})
	want := []string{"Change the default of `Default`: `ALPHA off` → `BETA on`",
		"Add the gate `New`: `ALPHA off` (needs Stage)", "Change the stage of `Stage`: `BETA on` → `GA on locked`",
		"Remove the gate `Gone`", "Change what is needed by `Needs`: nothing → `New`"}
	if !slices.Equal(got, want) || known != 1 {
		t.Errorf("%d known, got:\n%s\nwant:\n%s", known, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestGatesIn(t *testing.T) {
	t.Parallel()
	gates := facts{"A1": "ALPHA off", "Zed": "BETA on"}
	for description, want := range map[string]string{
		"Needs the Zed and the A1 feature gate; A1 is alpha.": " (gate A1 ALPHA off; gate Zed BETA on)",
		"Zeds are other gates.":                               "", "A Zed is a kind, too.": "",
	} {
		if got := gatesIn(description, gates); got != want {
			t.Errorf("%q: %q, want %q", description, got, want)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	const changelog = `- [v1.37.1](#v1371)
# v1.37.1
## Changes by Kind
### Deprecation
- one
  - of it
### Documentation
- other
### Bug or Regression
- mended
# v1.37.0
## Urgent Upgrade Notes 
### (No, really, you MUST read this before you upgrade)
- two
- three
## Changes by Kind
- other
# v1.37.0-rc.1
### Deprecation
- four
`
	for name, c := range map[string]struct {
		from, to string
		want     []note
	}{
		"final releases": {"v1.36.3", "v1.37.1", []note{{"v1.37.1", "Deprecation", 4, 6},
			{"v1.37.1", "Bug or Regression", 9, 10}, {"v1.37.0", "Urgent Upgrade Notes", 12, 15}}},
		"not what comes later": {"v1.36.3", "v1.37.0", []note{{"v1.37.0", "Urgent Upgrade Notes", 12, 15}}},
		"not what we have": {"v1.37.0", "v1.37.1", []note{{"v1.37.1", "Deprecation", 4, 6},
			{"v1.37.1", "Bug or Regression", 9, 10}}},
		"before a final one": {"v1.36.3", "v1.37.0-rc.1", []note{{"v1.37.0-rc.1", "Deprecation", 19, 20}}},
		"of the next minor": {"v1.36.3", "v1.38.0-beta.0", []note{{"v1.37.1", "Deprecation", 4, 6},
			{"v1.37.1", "Bug or Regression", 9, 10}, {"v1.37.0", "Urgent Upgrade Notes", 12, 15}}},
	} {
		got := notes(changelog, version.MustParseSemantic(c.from), version.MustParseSemantic(c.to))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	const mod = "require k8s.io/a v0.36.3\n\nrequire (\n\tk8s.io/api v0.36.3 // indirect\n\tk8s.io/b v0.0.0\n" +
		"\tk8s.io/old v0.36.30\n\tsigs.k8s.io/yaml v0.36.3\n)\n\nreplace k8s.io/b => k8s.io/b v0.36.3\n" +
		"replace k8s.io/unused => k8s.io/unused v0.36.3\n"
	var required []string
	pinned := pins(mod, "v0.36.3")
	for _, m := range pinned {
		if requires(mod, m) {
			required = append(required, m)
		}
	}
	if want := []string{"k8s.io/a", "k8s.io/api", "k8s.io/b", "k8s.io/unused"}; !slices.Equal(pinned, want) {
		t.Errorf("pinned %v, want %v", pinned, want)
	}
	if want := []string{"k8s.io/a", "k8s.io/api", "k8s.io/b"}; !slices.Equal(required, want) {
		t.Errorf("required %v, want %v", required, want)
	}
}

func TestModFiles(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{}
	got, err := modFiles(fstest.MapFS{"go.mod": file, "a/go.mod": file, "a/go.sum": file, "bin/go.mod": file,
		"b/testdata/go.mod": file})
	if want := []string{"a/go.mod", "go.mod"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestModuleVersion(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"v1.37.2": "v0.37.2", "v1.38.0-beta.0": "v0.38.0-beta.0"} {
		if got := moduleVersion(tag); got != want {
			t.Errorf("%q: %q, want %q", tag, got, want)
		}
	}
	for _, tag := range []string{"", "1.37.2", "v1.37", "v2.0.0", "latest"} {
		_, _, err := download(t.Context(), tag)
		if err == nil || !strings.Contains(err.Error(), "no tag of a release") {
			t.Errorf("%q: %v", tag, err)
		}
	}
}

// TestMetricsElsewhere: a release without a list is no empty one, and a list from elsewhere takes its place.
func TestMetricsElsewhere(t *testing.T) {
	t.Parallel()
	list := &fstest.MapFile{Data: []byte("- {name: a, type: Gauge, stabilityLevel: ALPHA}\n")}
	current := release{version: "v1.36.3", files: fstest.MapFS{metricLists()[1]: list}}
	next := release{version: "v1.37.2", files: fstest.MapFS{}}
	file := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(file, []byte("- {name: b, type: Gauge, stabilityLevel: ALPHA}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := metricsSection(current, next, "", "")
	if err != nil || s.against != "" || s.tasks != nil || !strings.Contains(s.remarks[0], "v1.37.2 has no list") {
		t.Errorf("without a list: %+v, %v", s, err)
	}
	s, err = metricsSection(current, next, "", file)
	if want := []string{"Add `b`: `gauge ALPHA`", "Remove `a`"}; err != nil || !slices.Equal(s.tasks, want) {
		t.Errorf("with a list from elsewhere: %v, %v; want %v", s.tasks, err, want)
	}
	s, err = metricsSection(next, current, file, "")
	if want := []string{"Add `a`: `gauge ALPHA`", "Remove `b`"}; err != nil || !slices.Equal(s.tasks, want) {
		t.Errorf("with an old list from elsewhere: %v, %v; want %v", s.tasks, err, want)
	}
}

// TestOurs: what we recorded is still in the forms that are read here.
func TestOurs(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	for path, c := range map[string]struct {
		read func(facts, []byte) error
		name string
	}{
		ourGates:                    {facts.table, "NodeSwap"},
		ourFlags + "/kubelet.txt":   {facts.recorded, "--config"},
		ourDiscovery + "/api.json":  {facts.aggregated, "v1 pods/eviction"},
		ourDiscovery + "/apis.json": {facts.aggregated, "apps/v1 deployments/scale"},
	} {
		f := facts{}
		if err := addFile(f, root, path, c.read); err != nil || f[c.name] == "" {
			t.Errorf("%s has no %s (%v): has its form changed?", path, c.name, err)
		}
	}
	if f := pluginFacts(admission.Usage("", nil)); f["LimitRanger"] != "on" || f["AlwaysDeny"] != "off" {
		t.Errorf("our admission plug-ins are %v", f)
	}
}
