package events

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/write/writetest"
)

// stored are events whose names, by which servers list them, are not in the order of time.
func stored() []string {
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	micro := func(d time.Duration) string {
		return time.Now().Add(-d).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	event := func(name, namespace, kind, more string) string {
		return `{"apiVersion":"v1","kind":"Event","metadata":{"name":"` + name + `","namespace":"` + namespace +
			`"},"involvedObject":{"kind":"` + kind + `","name":"x"},` + more + `}`
	}
	return []string{
		event("a", "default", "Pod",
			`"type":"Warning","reason":"BackOff","message":" again\n","count":3,"firstTimestamp":"`+
				ago(2*time.Hour+30*time.Minute)+`","lastTimestamp":"`+ago(15*time.Minute+30*time.Second)+`"`),
		event("b", "default", "Pod",
			`"type":"Normal","reason":"Scheduled","message":"to n1","eventTime":"`+micro(3*time.Hour+30*time.Minute)+
				`"`),
		event("c", "default", "ReplicaSet",
			`"type":"Normal","reason":"SuccessfulCreate","message":"made","count":1,"firstTimestamp":"`+
				ago(20*time.Minute+30*time.Second)+`","lastTimestamp":"`+ago(20*time.Minute+30*time.Second)+`"`),
		event("d", "default", "Pod",
			`"type":"Normal","reason":"Series","message":"s","eventTime":"`+micro(26*time.Hour+30*time.Minute)+
				`","series":{"count":7,"lastObservedTime":"`+micro(12*time.Minute+30*time.Second)+`"}`),
		event("e", "default", "Pod", `"type":"Normal","reason":"Timeless","message":"m"`),
	}
}

// TestList pins the table, what chooses events, and what is said when there are none.
func TestList(t *testing.T) {
	t.Parallel()
	const header = "LAST SEEN             TYPE      REASON             OBJECT         MESSAGE\n"
	rows := []string{
		"<unknown>             Normal    Timeless           Pod/x          m\n",
		"3h30m                 Normal    Scheduled          Pod/x          to n1\n",
		"20m                   Normal    SuccessfulCreate   ReplicaSet/x   made\n",
		"15m (x3 over 150m)    Warning   BackOff            Pod/x          again\n",
		"12m (x7 over 26h)     Normal    Series             Pod/x          s\n",
	}
	all := strings.Join(rows, "")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", header + all, 0},
		{"--no-headers", all, 0},
		{"--no-headers --types=warning", "15m (x3 over 150m) Warning BackOff Pod/x again\n", 0},
		{"-A --types=Warning,Normal -o name", "event/e\nevent/b\nevent/c\nevent/a\nevent/d\n", 0},
		{"-A --no-headers --types=Warning", "default 15m (x3 over 150m) Warning BackOff Pod/x again\n", 0},
		{"-o jsonpath={.kind}:{.items[*].metadata.name}", "EventList:e b c a d", 0},
		{"-n empty", "No events found in empty namespace.\n", 0},
		{"-n empty -o yaml", "No events found in empty namespace.\n", 0},
		{"--types=Odd", "error: valid --types are Normal or Warning\n", 1},
		{"--for=x", "error: --for must be in resource/name form\n", 1},
		{"--for=a/b/c", "error: arguments in resource/name form may not have more than one slash\n", 1},
		{"--for=foo/x", "error: the server doesn't have a resource type \"foo\"\n", 1},
		{"-o wide", "error: unable to match a printer suitable for the output format \"wide\", allowed formats are: go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml\n", 1},
	} {
		s := writetest.NewServer(t, stored()...)
		got, code := writetest.Run(t, NewCommand, s.URL, "", append([]string{"events"}, strings.Fields(c.args)...)...)
		if words(got) != words(c.want) || code != c.code {
			t.Errorf("events %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
	}
}

// words is s with single spaces: the width of columns is the printers' matter.
func words(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	return strings.Join(lines, "\n")
}

// TestFor: the server is asked for the events of one object, by kind, version and name.
func TestFor(t *testing.T) {
	t.Parallel()
	for about, want := range map[string][]string{
		"deploy/web": {"involvedObject.apiVersion%3Dapps%2Fv1", "involvedObject.kind%3DDeployment",
			"involvedObject.name%3Dweb"},
		"po/a": {"involvedObject.apiVersion%3Dv1", "involvedObject.kind%3DPod", "involvedObject.name%3Da"},
	} {
		s := writetest.NewServer(t)
		writetest.Run(t, NewCommand, s.URL, "", "events", "--for", about)
		log := strings.Join(s.Log(), "\n")
		for _, part := range want {
			if !strings.Contains(log, part) {
				t.Errorf("--for %s: requests %s, want %s in them", about, log, part)
			}
		}
	}
}

// TestHappened: a watch shows the header once and leaves out types that were not asked for.
func TestHappened(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &Options{IOStreams: cli.IOStreams{Out: &out}, print: printers.NewFlags(), types: []string{"Normal"},
		now: time.Now}
	table := newTable(&out, false, true)
	for _, e := range stored() {
		if err := o.happened(table, []byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	want := "LAST SEEN TYPE REASON OBJECT MESSAGE\n3h30m Normal Scheduled Pod/x to n1\n20m Normal SuccessfulCreate ReplicaSet/x made\n" +
		"12m (x7 over 26h) Normal Series Pod/x s\n<unknown> Normal Timeless Pod/x m\n"
	if words(out.String()) != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if err := o.happened(table, []byte("{")); err == nil {
		t.Error("no error for half an object")
	}
}
