package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"bonsai/pkg/why"
	"bonsai/pkg/why/render"
	"bonsai/pkg/why/whytest"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of testdata/scenarios again")

// TestScenarios: each file of testdata/scenarios has a cluster and questions about it; the answers must be those that
// the file has. The comment says what happened. The files of an archive:
//
//	world.yaml   the objects, as an API server returns them; {now} is when the questions are asked
//	hidden       resources that the caller may not read, one a line (optional)
//	denied       what others may not do, one a line: USER VERB RESOURCE (optional)
//	KIND NAME    the answer to that question, KIND as Kind or Kind.group, in the namespace "default" if the object has one
func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios:", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			scenario(t, path)
		})
	}
}

func scenario(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	source := &whytest.Source{}
	changed := false
	for i := range archive.Files {
		f := &archive.Files[i]
		switch f.Name {
		case "world.yaml":
			source.Objects = whytest.Parse(t, string(f.Data)).Objects
			continue
		case "hidden":
			source.Hidden = strings.Fields(string(f.Data))
			continue
		case "denied":
			denied := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			source.Can = func(a why.Access) (bool, string) {
				return !slices.Contains(denied, a.User+" "+a.Verb+" "+a.Resource), ""
			}
			continue
		}
		kind, name, ok := strings.Cut(f.Name, " ")
		if !ok {
			t.Fatalf("%s: %q is no question: KIND NAME", path, f.Name)
		}
		kind, group, _ := strings.Cut(kind, ".")
		o := why.Object{Group: group, Kind: kind, Name: name, Namespace: namespaceOf(source, kind, name)}
		a := whytest.Ask(t, source, explainers(), o)
		got := render.Text(a, render.Style{Now: whytest.Now, Escape: func(s string) string { return s }})
		if got == string(f.Data) {
			continue
		}
		if changed = true; !*rewrite {
			t.Errorf("%s: %s\ngot\n%s\nwant\n%s", path, f.Name, got, f.Data)
		}
		f.Data = []byte(got)
	}
	if changed && *rewrite {
		if err := os.WriteFile(path, bytes.TrimRight(txtar.Format(archive), "\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// namespaceOf returns the namespace of an object of the world; "default" for one that is not there.
func namespaceOf(s *whytest.Source, kind, name string) string {
	for _, u := range s.Objects {
		if u.GetKind() == kind && u.GetName() == name {
			return u.GetNamespace()
		}
	}
	return "default"
}

// TestAgo: the time of the scenarios' questions is fixed, so that their answers are.
func TestAgo(t *testing.T) {
	t.Parallel()
	if !whytest.Now.Equal(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)) {
		t.Error("the scenarios are written for another time")
	}
}
