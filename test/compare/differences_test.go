package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write docs/differences.md")

// area is a group of differences on the page.
type area struct {
	Area        string
	Differences []entry
}

// entry is one line of the page.
type entry struct {
	Request, Kubernetes, Bonsai, Why string
}

// TestDifferences: docs/differences.md is what differences.yaml says, so that the data is edited and not the page.
func TestDifferences(t *testing.T) {
	const page = "../../docs/differences.md"
	data, err := os.ReadFile("differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var areas []area
	if err := yaml.UnmarshalStrict(data, &areas); err != nil {
		t.Fatal(err)
	}
	want := render(t, areas)
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what differences.yaml says (go test ./test/compare -update)", page)
	}
}

// render returns the page, and fails the test for an entry that lacks a side.
func render(t *testing.T, areas []area) []byte {
	t.Helper()
	var page bytes.Buffer
	page.WriteString(differencesHead)
	for _, a := range areas {
		fmt.Fprintf(&page, "\n## %s\n\n| what | Kubernetes | Bonsai | why |\n|---|---|---|---|\n", a.Area)
		for _, d := range a.Differences {
			if d.Request == "" || d.Kubernetes == "" || d.Bonsai == "" {
				t.Errorf("%s: %+v lacks a side", a.Area, d)
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", d.Request, d.Kubernetes, d.Bonsai, d.Why)
		}
	}
	return []byte(strings.TrimRight(page.String(), "\n") + "\n")
}

const differencesHead = `# Differences from Kubernetes

What clients see that differs from Kubernetes 1.37.2 on purpose. ` + "`test/compare/differences.yaml`" + ` has the data of this
page. Differences of kubectl are in [kubectl.md](kubectl.md); missing features are in [features.md](features.md).

We found them with random requests, and with the manifests of 89 projects ([` + "`test/compare`" + `](../test/compare/main.go)):
1,847 definitions, 10,145 objects and 103,159 requests. That program counts the differences that it knows by reason, and
prints all others: 0 to 4 of 1,200 requests, in messages about malformed patches and bodies.

An empty last column means that Bonsai's answer says more, or fits what other kinds do.
`
