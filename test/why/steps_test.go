package why

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeKubectl prints its input and its arguments. With the argument "refuse" it fails.
const fakeKubectl = `#!/bin/sh
for a in "$@"; do [ "$a" = refuse ] && { echo "no: $*" >&2; exit 1; }; done
cat
echo "args: $*"
[ ! -e calls ] || echo again
touch calls
`

// TestSteps: each kind of step succeeds when it should, and its error shows the last output when it does not.
func TestSteps(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		step Step
		want string // in the error; none if empty
	}{
		"a manifest":           {Step{Apply: "kind: $NS"}, ""},
		"a command":            {Step{Run: "kubectl get 'a b'"}, ""},
		"a command that fails": {Step{Run: "kubectl refuse x"}, "no: refuse x"},
		"a refusal":            {Step{Run: "kubectl refuse $NS", Fails: `refuse $NS`}, ""},
		"another refusal":      {Step{Run: "kubectl refuse x", Fails: "forbidden"}, "not with"},
		"no refusal":           {Step{Run: "kubectl get x", Fails: "forbidden"}, "did not fail"},
		"a state":              {Step{Until: "kubectl get $NODE1", Matches: `args: get $NODE1\n$`}, ""},
		"a state that comes":   {Step{Until: "kubectl get x", Matches: "again"}, ""},
		"a state that never comes": {Step{Until: "kubectl get x", Matches: "Ready", Within: "1ms"},
			"does not match"},
		"a refusal that is waited for": {Step{Until: "kubectl refuse x", Fails: "no: "}, ""},
		"a refusal that does not come": {Step{Until: "kubectl get no", Fails: "no", Within: "1ms"},
			"does not match"},
		"a name is no expression": {Step{Until: "kubectl get why-xyz", Matches: "$NS", Within: "2s"},
			"does not match"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, "kubectl")
			if err := os.WriteFile(program, []byte(fakeKubectl), 0o755); err != nil {
				t.Fatal(err)
			}
			p := &place{cluster: &cluster{kubectl: program}, t: t, dir: dir,
				vars:   strings.NewReplacer("$NS", "why-x.z", "$NODE1", "n1"),
				quoted: strings.NewReplacer("$NS", `why-x\.z`, "$NODE1", "n1")}
			err := p.do(t.Context(), c.step)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, not %q", err, c.want)
			}
		})
	}
}
