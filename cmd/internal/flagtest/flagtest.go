// Package flagtest holds the flags of a component against those of Kubernetes' own.
package flagtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
)

// Stock wants every flag of Kubernetes' component of that name, as pkg/cluster/testdata/flags has them, to be among fs,
// and those without effect to take the same type of value.
func Stock(t *testing.T, component string, fs *pflag.FlagSet, accepted daemon.AcceptedFlags) {
	t.Helper()
	recorded, err := os.ReadFile(filepath.Join("..", "..", "pkg", "cluster", "testdata", "flags", component+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string]bool{}
	for _, group := range accepted {
		for _, name := range group.Names() {
			idle[name] = true
		}
	}
	for line := range strings.Lines(string(recorded)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		f := fs.Lookup(name)
		switch {
		case name != "help" && f == nil && (len(name) != 1 || fs.ShorthandLookup(name) == nil):
			t.Errorf("--%s of Kubernetes' %s is not known", name, component)
		case f != nil && idle[name] && shownType(f) != kind:
			t.Errorf("%s --%s takes %s; Kubernetes' own takes %s", component, name, shownType(f), kind)
		}
	}
}

// shownType is the type of a flag's values as --help shows it, which leaves out that of switches.
func shownType(f *pflag.Flag) string {
	if kind, _ := pflag.UnquoteUsage(f); kind != "" {
		return kind
	}
	return f.Value.Type()
}
