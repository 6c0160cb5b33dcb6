package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
	"bonsai/cmd/internal/flagtest"
	"bonsai/pkg/referencetest"
	"bonsai/pkg/story"
	"bonsai/pkg/story/storytest"
)

// TestAnswers: what is shown of a cluster with and without traces, as recorded.
func TestAnswers(t *testing.T) {
	t.Parallel()
	objects := recorded(t, "cluster.json")
	stock := start(t, &server{objects: objects})
	traced := start(t, &server{objects: objects, served: true,
		traces: append(storytest.Pods(12, 150), storytest.Pod())})
	broken := start(t, &server{objects: recorded(t, "broken.json"), served: true, traces: storytest.Broken()})
	untraced := start(t, &server{objects: recorded(t, "broken.json")})
	for name, test := range map[string]struct {
		of   *server
		args string
	}{
		"stock-pod.txt":         {stock, "pod/web-6d4cf56db6-aaaaa"},
		"stock-failing.txt":     {stock, "po web-6d4cf56db6-bbbbb"},
		"stock-deployment.txt":  {stock, "deployment/web"},
		"stock-namespace.txt":   {stock, "-n default --slowest 3"},
		"stock-node.txt":        {stock, "node/n1"},
		"stock-configmap.txt":   {stock, "cm/settings"},
		"traced-pod.txt":        {traced, "pod/web-6d4cf56db6-aaaaa"},
		"traced-gone.txt":       {traced, "pod/web-03"},
		"traced-deployment.txt": {traced, "deploy/web"},
		"traced-namespace.txt":  {traced, "--last 30m --slowest 5"},
		"traced-all.txt":        {traced, "-A"},
		"traced-against.txt":    {traced, "--last 9m58s --against 9m58s"},
		"broken-crashing.txt":   {broken, "-n store pod/ledger-0"},
		"broken-program.txt":    {broken, "-n store pod/front-5d9c-aaaaa"},
		"broken-probe.txt":      {broken, "-n store pod/front-5d9c-bbbbb"},
		"broken-deployment.txt": {broken, "-n store deployment/front"},
		"broken-set.txt":        {broken, "-n store statefulset/ledger"},
		"broken-job.txt":        {broken, "-n store job/import"},
		"broken-job-pod.txt":    {broken, "-n store pod/import-zzzzz"},
		"broken-stuck-job.txt":  {broken, "-n store job/stuck"},
		"broken-namespace.txt":  {broken, "-n store"},
		"stock-crashing.txt":    {untraced, "-n store pod/ledger-0"},
		"stock-job.txt":         {untraced, "-n store job/import"},
		"stock-broken.txt":      {untraced, "-n store"},
		"stock-pod.json":        {stock, "pod/web-6d4cf56db6-aaaaa -o json"},
		"traced-against.json":   {traced, "--last 9m58s --against 9m58s --slowest 1 -o json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errOut := test.of.ask(t, 0, strings.Fields(test.args)...)
			if code != 0 || errOut != "" {
				t.Fatalf("exit code %d: %s", code, errOut)
			}
			storytest.Golden(t, name, out)
		})
	}
}

// TestArguments: what is refused, in kubectl's words and with its exit code.
func TestArguments(t *testing.T) {
	t.Parallel()
	s := start(t, &server{objects: recorded(t, "cluster.json")})
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"three":             {"pod a b", 1, "One object is traced at a time"},
		"no name":           {"pod/", 1, "does not name an object"},
		"type alone":        {"pod", 1, "use TYPE NAME or TYPE/NAME"},
		"another path":      {"pod ..", 1, `invalid resource name ".."`},
		"another namespace": {"-n ..", 1, `invalid resource name ".."`},
		"unknown type":      {"tea/x", 1, `the server doesn't have a resource type "tea"`},
		"absent":            {"pod/absent", 1, "Error from server (NotFound): absent not found"},
		"name and -A":       {"pod/x -A", 1, "a resource cannot be retrieved by name across all namespaces"},
		"format":            {"-o xml", 1, `output format "xml", allowed formats are: html,json,svg,wide`},
		"color":             {"--color blue", 1, "--color must be auto, always or never"},
		"last":              {"--last 0s", 1, "--last must be greater than 0"},
		"negative":          {"--against -3h", 1, "--against must be greater than 0"},
		"overlap":           {"--last 2h --against 1h", 1, "the times would overlap"},
		"slowest":           {"--slowest -1", 1, "--slowest must not be negative"},
		"width":             {"--width -1", 1, "--width must not be negative"},
		"many pods of one":  {"pod/x --slowest 3", 1, "are for many pods"},
		"unknown flag":      {"--nonsense", 1, "unknown flag: --nonsense\nSee 'kubectl trace --help' for usage."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errOut := s.ask(t, 0, strings.Fields(c.args)...)
			if code != c.code || out != "" || !strings.Contains(errOut, c.want) {
				t.Errorf("exit code %d, out %q, err %q, want %q", code, out, errOut, c.want)
			}
		})
	}
	if code, out, _ := s.ask(t, 0, "--help"); code != 0 || !strings.Contains(out, "kubectl trace -n shop --last 30m") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestNoServer: a server that is not there is reported as kubectl reports it.
func TestNoServer(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if code, _, errOut := (&server{url: gone.URL}).ask(t, 0, "-n", "x"); code != 1 ||
		!strings.Contains(errOut, "was refused - did you specify the right host or port?") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestRefused: what the caller may not read is said, and what can be read is shown.
func TestRefused(t *testing.T) {
	t.Parallel()
	const ns = "/api/v1/namespaces/default/"
	objects := recorded(t, "cluster.json")
	for name, test := range map[string]struct {
		refused string
		args    string
		code    int
		want    string
	}{
		"events":     {ns + "events", "pod/web-6d4cf56db6-aaaaa", 0, "you may not list events"},
		"of many":    {ns + "events", "-n default", 0, "you may not list events"},
		"pods":       {ns + "pods", "-n default", 1, "Error from server (Forbidden): not allowed"},
		"one trace":  {"/apis/traces.bonsai.io/v1alpha1/namespaces/default/traces/0b6f3f4e-31d1-4f65-9a84-5a3f8d2c7b11", "pod/web-6d4cf56db6-aaaaa", 0, "you may not read traces.bonsai.io"},
		"all traces": {"/apis/traces.bonsai.io/v1alpha1/namespaces/default/traces", "-n default", 0, "you may not read traces.bonsai.io"},
		"the group":  {"/apis/traces.bonsai.io/v1alpha1", "-n default", 0, "you may not use traces.bonsai.io"},
		"a set":      {"/apis/apps/v1/namespaces/default/replicasets/web-6d4cf56db6", "pod/web-6d4cf56db6-aaaaa", 0, "Ready after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, &server{objects: objects, served: strings.Contains(test.refused, "bonsai"),
				refused: []string{test.refused}})
			code, out, errOut := s.ask(t, 200, append(strings.Fields(test.args), "--color", "never")...)
			if code != test.code || !strings.Contains(out+errOut, test.want) {
				t.Errorf("exit code %d, out %q, err %q", code, out, errOut)
			}
		})
	}
}

// TestFormats: each format is one document that its readers take.
func TestFormats(t *testing.T) {
	t.Parallel()
	s := start(t, &server{objects: recorded(t, "cluster.json"), served: true,
		traces: append(storytest.Pods(3, 100), storytest.Pod())})
	for _, args := range []string{"pod/web-6d4cf56db6-aaaaa", "deployment/web", "-n default --last 9m --against 9m",
		"node/n1"} {
		for format, check := range map[string]func(string) error{
			"json": func(out string) error { return json.Unmarshal([]byte(out), &struct{ story.Story }{}) },
			"svg":  wellFormed,
			"html": func(out string) error {
				if !strings.HasPrefix(out, "<!DOCTYPE html>") || !strings.HasSuffix(out, "</html>\n") {
					return errors.New("not a page")
				}
				return nil
			},
		} {
			code, out, errOut := s.ask(t, 0, append(strings.Fields(args), "-o", format)...)
			if code != 0 || check(out) != nil {
				t.Errorf("%s -o %s: exit code %d, %v, %s", args, format, code, check(out), errOut)
			}
		}
	}
}

// wellFormed reports what keeps a document from being XML.
func wellFormed(doc string) error {
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestColours: on a terminal, unless the user wants none; elsewhere if the user wants them.
func TestColours(t *testing.T) {
	t.Parallel()
	s := start(t, &server{objects: recorded(t, "cluster.json")})
	for _, test := range []struct {
		columns int
		color   string
		want    bool
	}{{0, "auto", false}, {80, "auto", true}, {80, "never", false}, {0, "always", true}} {
		_, out, _ := s.ask(t, test.columns, "pod/web-6d4cf56db6-aaaaa", "--color", test.color)
		if strings.Contains(out, "\x1b[") != test.want {
			t.Errorf("%+v: %q", test, out)
		}
	}
}

// TestHostile: names and messages that anybody may choose do not steer the terminal, and leave no element of a page.
func TestHostile(t *testing.T) {
	t.Parallel()
	evil := storytest.Hostile()
	evil.Namespace, evil.Name, evil.Object.Name, evil.Object.Kind = "default", "evil", "web-00", "Pod"
	s := start(t, &server{objects: recorded(t, "cluster.json"), served: true, traces: []*traces.Trace{evil}})
	for _, args := range []string{"pod/web-00", "pod/web-00 -o wide", "-n default --slowest 3", "-n default -o json",
		"pod/web-00 -o json"} {
		code, out, errOut := s.ask(t, 0, strings.Fields(args)...)
		if code != 0 {
			t.Errorf("%s: %s", args, errOut)
		}
		for _, r := range out {
			if r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e && !strings.Contains(args, "json") {
				t.Errorf("%s: %q reaches the terminal", args, r)
				break
			}
		}
	}
	for _, format := range []string{"html", "svg"} {
		_, out, _ := s.ask(t, 0, "pod/web-00", "-o", format)
		if strings.Contains(out, "<script") || strings.Contains(out, "<img") || strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("-o %s lets a text through:\n%s", format, out)
		}
	}
}

// TestUnicode: the locale decides, in the order of its variables.
func TestUnicode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true}, {map[string]string{"LANG": "C"}, false}, {map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LC_ALL": "POSIX", "LANG": "C.utf8"}, false},
	} {
		if got := unicode(func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%v: %t", test.env, got)
		}
	}
}

// TestReferenceCommand: docs/reference has the command as it is.
func TestReferenceCommand(t *testing.T) {
	t.Parallel()
	cmd := newCommand(terminal{now: time.Now})
	cmd.Flags().Lookup("cache-dir").DefValue = "" // the home directory of whoever runs the test
	referencetest.Check(t, "commands/kubectl-trace.md", "# Command kubectl trace\n\n"+
		"Made from the program by `go test ./cmd/kubectl-trace -run TestReference -args -update`.\n\n```text\n"+cmd.Long+
		"\n```\n\n```text\n"+cmd.Example+"\n```\n\n"+flagtest.FlagTable(cmd.Flags()))
}
