package why

import (
	"strings"
	"testing"
)

// TestJudge: a true answer has no fault, and every other one has the fault that is named.
func TestJudge(t *testing.T) {
	broken := &Situation{First: []string{"cpu", `\b4\b`}, Never: []string{"memory"}, Fix: "300m",
		Says: []string{"waits"}}
	cpu := Cause{Text: "no node has room",
		Because: []Cause{{Text: "n1 lacks cpu: 4", Fixes: []Fix{{Command: "set 300m"}}}}}
	memory := Cause{Text: "n1 lacks memory", Fixes: []Fix{{Text: "300m"}}}
	for what, c := range map[string]struct {
		s    *Situation
		a    Answer
		want []string
	}{
		"the true cause, down the chain": {broken, Answer{State: "waits", Causes: []Cause{cpu, memory}}, nil},
		"the true cause second": {broken, Answer{State: "waits", Causes: []Cause{memory, cpu}},
			[]string{`does not match "cpu"`, `does not match "\\b4\\b"`, `matches "memory"`}},
		"no cause": {broken, Answer{State: "waits"}, []string{"no cause"}},
		"well, which it is not": {broken, Answer{State: "waits", Well: true, Causes: []Cause{cpu}},
			[]string{"says that it is well"}},
		"no fix": {&Situation{First: []string{"cpu"}, Fix: "600m"}, Answer{Causes: []Cause{cpu}},
			[]string{`no fix of the first cause matches "600m"`}},
		"a fix of another cause": {&Situation{First: []string{"room"}, Fix: "300m"},
			Answer{Causes: []Cause{{Text: "room"}, memory}}, []string{"no fix of the first cause"}},
		"well":        {&Situation{Well: true}, Answer{Well: true}, nil},
		"not well":    {&Situation{Well: true}, Answer{Causes: []Cause{cpu}}, []string{"does not say that it is well"}},
		"a state":     {&Situation{Says: []string{"zero"}}, Answer{State: "scaled to zero", Well: true}, nil},
		"no variable": {&Situation{First: []string{"$NS"}}, Answer{Causes: []Cause{{Text: "ns.1"}}}, nil},
	} {
		faults := Judge(c.s, c.a, strings.NewReplacer("$NS", `ns\.1`).Replace)
		if len(faults) != len(c.want) {
			t.Errorf("%s: %q, not %q", what, faults, c.want)
			continue
		}
		for i, f := range faults {
			if !strings.Contains(f, c.want[i]) {
				t.Errorf("%s: %q, not %q", what, f, c.want[i])
			}
		}
	}
}

// TestRead: answers of both forms are read.
func TestRead(t *testing.T) {
	for what, c := range map[string]struct {
		printed, state, causes string
		well                   bool
	}{
		"an answer": {`{"state":"waits","well":false,"causes":[{"text":"cpu"}]}`, "waits", "cpu", false},
		"a change without trouble": {`{"change":"scale x","placed":[{},{}],"waiting":[{"already":true}],` +
			`"ended":[{"lost":false}]}`, "scale x: 2 placed, 0 waiting", "", true},
		"a change with trouble": {`{"change":"drain n","waiting":[{"pod":{"name":"web"},"message":"no cpu"}],` +
			`"ended":[{"pod":{"name":"bare"},"lost":true}],` +
			`"budgets":[{"budget":{"name":"one"},"effect":"forbids","text":"db-0"}]}`,
			"drain n: 0 placed, 1 waiting", "one forbids db-0\nweb: no cpu\nbare would be lost", false},
	} {
		a, err := Read([]byte(c.printed))
		var causes []string
		for _, cause := range a.Causes {
			causes = append(causes, cause.Text)
		}
		if err != nil || a.State != c.state || a.Well != c.well || strings.Join(causes, "\n") != c.causes {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
	if _, err := Read([]byte("error: unknown flag")); err == nil {
		t.Error("what is no JSON is an answer")
	}
}
