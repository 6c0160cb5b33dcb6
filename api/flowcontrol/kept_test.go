package flowcontrol

import (
	"os"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"sigs.k8s.io/yaml"
)

// The kept objects are those that a real kube-apiserver v1.36.3 made in an empty cluster (testdata/kept.golden), valid,
// and complete without defaults.
func TestKept(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/kept.golden")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	show := func(obj any) string {
		out, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(out), "\n")
	}
	gv := flowcontrolv1.SchemeGroupVersion.String()
	for _, f := range slices.Concat(MandatorySchemas(), SuggestedSchemas()) {
		f.APIVersion, f.Kind = gv, "FlowSchema"
		got = append(got, show(f))
		if errs := validateFlowSchema(&f); len(errs) > 0 {
			t.Errorf("%s: %v", f.Name, errs)
		}
	}
	for _, l := range slices.Concat(MandatoryLevels(), SuggestedLevels()) {
		l.APIVersion, l.Kind = gv, "PriorityLevelConfiguration"
		plain := show(l)
		got = append(got, plain)
		if errs := validatePriorityLevel(&l); len(errs) > 0 {
			t.Errorf("%s: %v", l.Name, errs)
		}
		if defaultPriorityLevel(&l); show(l) != plain {
			t.Errorf("%s has defaults to fill in: %s", l.Name, show(l))
		}
	}
	slices.Sort(got)
	if all := strings.Join(got, "\n---\n") + "\n"; all != string(want) {
		t.Errorf("kept objects:\n%s", all)
	}
}
