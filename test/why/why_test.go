package why

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster to make situations on; without it they are skipped")
	program    = flag.String("why", "../../bin/kubectl-why", "the binary that is asked")
	kubectl    = flag.String("kubectl", "../../bin/kubectl", "the kubectl that makes the situations")
	wanted     = flag.String("situation", "", "a regular expression: only situations whose names match")
	side       = flag.String("side", "bonsai", "the kind of the cluster: "+strings.Join(sides, " or "))
	statesOnly = flag.Bool("states", false, "make the situations and ask nothing")
)

// TestSituations makes every situation in a namespace of its own, asks the question and judges the answer. Those that
// disturb others come first, one after the other; the rest is made side by side (-parallel).
func TestSituations(t *testing.T) {
	if *kubeconfig == "" {
		t.Skip("SKIPPED: no cluster; run `make why KUBECONFIG=file`")
	}
	if !slices.Contains(sides, *side) {
		t.Fatalf("-side %s: unknown (known: %s)", *side, strings.Join(sides, ", "))
	}
	only, err := regexp.Compile(*wanted)
	if err != nil {
		t.Fatal("-situation:", err)
	}
	for _, file := range []*string{program, kubectl} {
		if *file, err = filepath.Abs(*file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(*program); err != nil && !*statesOnly {
		t.Fatal("-why: ", err)
	}
	all, err := Load(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, *kubectl, *kubeconfig)
	for _, s := range all {
		if !only.MatchString(s.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if !s.Alone {
				t.Parallel()
			}
			try(t, c, s)
		})
	}
}

// try makes one situation and asks its question.
func try(t *testing.T, c *cluster, s *Situation) {
	if len(s.On) > 0 && !slices.Contains(s.On, *side) {
		t.Skipf("SKIPPED: only on %s", strings.Join(s.On, ", "))
	}
	if len(c.nodes) < max(1, s.Nodes) {
		t.Skipf("SKIPPED: needs %d nodes that take pods, and the cluster has %d", max(1, s.Nodes), len(c.nodes))
	}
	p := c.enter(t, s)
	for _, need := range s.Needs {
		if !c.has(p, need) {
			t.Skipf("SKIPPED: the cluster does not have %s", need)
		}
	}
	for _, n := range s.Pretend {
		if err := p.pretend(n); err != nil {
			t.Fatal("the state is not reached: ", err)
		}
	}
	for _, step := range s.Setup {
		if err := p.do(t.Context(), step); err != nil {
			t.Fatal("the state is not reached: ", err)
		}
	}
	if *statesOnly {
		return
	}
	args, err := words(p.vars.Replace(s.Ask))
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-n", p.ns, "-o", "json"}, args...)
	// An answer that names a fault may come with any exit code: what is printed counts.
	out, failed := p.command(t.Context(), "", *program, args...)
	a, err := Read([]byte(out))
	if err != nil {
		t.Fatalf("kubectl why %s: no answer in JSON: %v\n%v", strings.Join(args, " "), err, failed)
	}
	faults := Judge(s, a, p.ns, p.quoted.Replace)
	if len(faults) == 0 {
		return
	}
	shown, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s\nasked:  kubectl why %s\nstory:  %s%s\nanswer: %s\nwanted: well %v, first %q, never %q, says %q, fix %q",
		s.Question, strings.Join(args, " "), s.Story, strings.Join(faults, "\n"), shown,
		s.Well, s.First, s.Never, s.Says, s.Fix)
}
