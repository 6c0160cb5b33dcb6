package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func exampleResult(failing ...string) *result {
	r := &result{Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Commit: "abc", Suite: suiteVersion,
		Labels: conformanceSpecs, Kubectl: "ours", Wall: 90 * time.Second}
	for _, name := range []string{"[sig-node] Pods a", "[sig-node] Pods b", "[sig-apps] Jobs c", "odd name"} {
		s := spec{Name: name, Passed: !slices.Contains(failing, name)}
		if !s.Passed {
			s.Why = "expected <nil> got `x`"
		}
		r.Specs = append(r.Specs, s)
	}
	return r
}

func TestResultFileIsReadBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := exampleResult("[sig-node] Pods b", "odd name")
	r.write(&out, []string{"odd name"}, true)
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(path)
	if err != nil || got.scope != r.scope() || !slices.Equal(got.failing, []string{"[sig-node] Pods b", "odd name"}) {
		t.Fatalf("read back %q, %v", got, err)
	}
	for _, want := range []string{"**passed: 2 of 4**", "| sig-node | 1 | 1 | 2 |", "| other | 0 | 1 | 1 |",
		"expected &lt;nil> got 'x'", "## Newly failing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestRecordTellsWhatNewlyFails(t *testing.T) {
	t.Parallel()
	s := settings{results: filepath.Join(t.TempDir(), "new", "RESULTS.md")}
	for _, step := range []struct {
		failing []string
		newly   bool
	}{{[]string{"[sig-node] Pods a"}, false}, {[]string{"[sig-node] Pods a"}, false},
		{[]string{"[sig-apps] Jobs c"}, true}} {
		if err := s.record(exampleResult(step.failing...)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(s.results)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(data), "## Newly failing")
		if strings.Contains(after, "Jobs c") != step.newly {
			t.Errorf("after %v: %s", step.failing, data)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, failing ...string) string {
		var out bytes.Buffer
		exampleResult(failing...).write(&out, nil, false)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two, none := file("one", "[sig-node] Pods a"), file("two", "[sig-node] Pods a", "odd name"), file("none")
	focused := exampleResult()
	focused.Focus = "Pods"
	var text bytes.Buffer
	focused.write(&text, nil, false)
	part := filepath.Join(dir, "part")
	if err := os.WriteFile(part, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new string
		bad      bool
	}{{one, part, true}, {one, one, false}, {one, two, true}, {two, one, false}, {none, none, false}, {none, one, true},
		{one, filepath.Join(dir, "absent"), true}} {
		var out bytes.Buffer
		if err := diffFiles(c.old, c.new, &out); (err != nil) != c.bad {
			t.Errorf("%s to %s: %v\n%s", filepath.Base(c.old), filepath.Base(c.new), err, out.String())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("# Hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(filepath.Join(dir, "other")); err == nil {
		t.Error("a file without the list was taken for a result")
	}
}

func TestReadReport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.json")
	report := `[{"SpecReports":[
	 {"LeafNodeType":"It","ContainerHierarchyTexts":["[sig-node] Pods"],"LeafNodeText":"run","State":"passed","RunTime":1500000000},
	 {"LeafNodeType":"It","LeafNodeText":"not chosen","State":"skipped"},
	 {"LeafNodeType":"It","LeafNodeText":"gave up","State":"skipped","Failure":{"Message":"needs\n more"}},
	 {"LeafNodeType":"It","LeafNodeText":"broke","State":"failed","Failure":{"Message":"a\n\tb"}},
	 {"LeafNodeType":"SynchronizedBeforeSuite","State":"passed"}]},{"SpecReports":null}]`
	if err := os.WriteFile(path, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(path)
	want := []spec{{"[sig-node] Pods run", true, "", 1500 * time.Millisecond},
		{"gave up", false, "skipped: needs more", 0}, {"broke", false, "a b", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out)
	for _, piece := range []string{"Will run 2 of 70 specs\nSS\n• [2.1",
		"68 seconds]\n[sig-a] One [It] works [Conformance] [sig-a, Conformance]\n/x.go:1\n",
		"• [FAILED] [0.105 seconds]\n[sig-b] Two\n",
		"----\n[sig-c] Three [sig-c, Serial]\n/y.go:2\n  STEP: x\n• [1.000 seconds]\n----\n"} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	want := "   1/2 passed  2.168s  [sig-a] One works [Conformance]\n   2/2 FAILED  0.105s  [sig-b] Two\n   3/2 passed  1.000s  [sig-c] Three\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		results string
		bad     bool
	}{
		{[]string{"-module=/m", "-data=/d"}, "/m/RESULTS.md", false},
		{[]string{"-module=/m", "-data=/d", "-focus=Pods"}, "/d/RESULTS.md", false},
		{[]string{"-module=/m", "-data=/d", "-labels=Feature: containsAny NetworkPolicy"}, "/d/RESULTS.md", false},
		{[]string{"-focus=("}, "", true},
		{[]string{"-kubectl=theirs"}, "", true},
		{[]string{"-procs=0"}, "", true},
	} {
		s, err := parseSettings(c.args)
		if (err != nil) != c.bad || !c.bad && s.results != c.results {
			t.Errorf("%v: %q, %v", c.args, s.results, err)
		}
	}
}
