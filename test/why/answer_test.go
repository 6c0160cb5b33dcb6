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
		"well": {&Situation{Well: true}, Answer{Well: true}, nil},
		"not well": {&Situation{Well: true}, Answer{Causes: []Cause{cpu}},
			[]string{"does not say that it is well"}},
		"a state":       {&Situation{Says: []string{"zero"}}, Answer{State: "scaled to zero", Well: true}, nil},
		"the namespace": {&Situation{First: []string{"in $NS-a"}}, Answer{Causes: []Cause{{Text: "in ns.cpu-a"}}}, nil},
		"a node":        {&Situation{First: []string{"$NODE1"}}, Answer{Causes: []Cause{{Text: "n.1"}}}, nil},
		"another node": {&Situation{First: []string{"$NODE1"}}, Answer{Causes: []Cause{{Text: "n-1"}}},
			[]string{"does not match"}},
		"the cause in the namespace's name": {&Situation{First: []string{"cpu"}},
			Answer{Causes: []Cause{{Text: "pod ns.cpu/web"}}}, []string{`does not match "cpu"`}},
	} {
		faults := Judge(c.s, c.a, "ns.cpu", strings.NewReplacer("$NODE1", `n\.1`).Replace)
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

// TestRead: an answer is read, and what is none is refused.
func TestRead(t *testing.T) {
	a, err := Read([]byte(`{"state":"waits","well":false,"causes":[{"text":"cpu"}],"foreseen":{}}`))
	if err != nil || a.State != "waits" || a.Well || len(a.Causes) != 1 || a.Causes[0].Text != "cpu" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := Read([]byte("error: unknown flag")); err == nil {
		t.Error("what is no JSON is an answer")
	}
}
