package kuberc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const head = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"

func write(t *testing.T, text string) Location {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kuberc")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Location{Path: path, Explicit: true}
}

// TestMistakesArePlaced: what is wrong with a file is said with its name and line.
func TestMistakesArePlaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		head + "aliases:\n- {name: ok, command: get}\n- {name: not-ok, command: get}\n":            "line 5: invalid alias name",
		head + "aliases:\n- {name: a, command: get}\n- {name: a, command: get}\n":                  "line 5: duplicate alias name a",
		head + "credentialPluginPolicy: Sometimes\n":                                               "line 3: unknown plugin policy",
		head + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- {}\n":             "line 5: misconfigured credential plugin allowlist: empty allowlist entry #1",
		head + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- {command: ./x}\n": "line 5: non-normalized file path: \"./x\" vs \"x\"",
		head + "aliases: [\n":                 "line 3: did not find expected node content",
		head + "aliases: {a: b}\n":            "line 3: cannot unmarshal !!map",
		"apiVersion: v2\nkind: Preference\n":  "line 1: no valid preferences found",
		"just text":                           "line 1: want a mapping with kind and apiVersion",
		head + "aliases: []\naliases: []\n":   "line 4: mapping key \"aliases\" already defined at line 3",
		head + "aliases: 3\n":                 "line 3: cannot unmarshal !!int `3`\n",
		head + "aliases: [1,2,3,4,5,6,6,7]\n": "line 3: cannot unmarshal !!int `1`, line 3: cannot unmarshal !!int `2`, line 3: cannot unmarshal !!int `3`, line 3: cannot unmarshal !!int `4`, line 3: cannot unmarshal !!int `5`, and more\n",
		head + "aliases:\n- name: [x]\n":      "line 4: cannot unmarshal !!seq into string\n",
		head + strings.Repeat("#", maxFile):   "it has more than 1048576 bytes\n",
		head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\naliases: *d\n": "line 5: cannot unmarshal !!seq\n",
	} {
		l := write(t, text)
		if _, err := Load(l, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error()+"\n", l.Path+": "+want) {
			t.Errorf("%q: %v, want %s: %s", text, err, l.Path, want)
		}
	}
	var said bytes.Buffer
	l := write(t, "kind: Other\n---\n"+head+"# a comment\n\n\naliases: []\n\nnosuch: 1\n")
	if p, err := Load(l, &said); p == nil || err != nil ||
		said.String() != "kuberc: ignoring strict decoding error in "+l.Path+": line 10: unknown field nosuch\n" {
		t.Errorf("an unknown field: %v, %v, %q", p, err, said.String())
	}
}

// TestBuiltInsStay: an alias takes no command's place, and is what it stands for otherwise.
func TestBuiltInsStay(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "kubectl"}
	ran := ""
	for _, name := range []string{"get", "delete"} {
		root.AddCommand(&cobra.Command{Use: name, RunE: func(_ *cobra.Command, args []string) error {
			ran = name + " " + strings.Join(args, " ")
			return nil
		}})
	}
	p := &Preference{Aliases: []Alias{{Name: "get", Command: "delete"},
		{Name: "rm", Command: "delete", Prepended: []string{"cm"}, Appended: []string{"last"}}}}
	for line, want := range map[string]string{"get x": "get x", "rm x": "delete cm x last"} {
		args, err := p.Apply(root, strings.Fields(line), 0)
		if err != nil {
			t.Fatal(err)
		}
		root.SetArgs(args)
		if err := root.Execute(); err != nil || ran != want {
			t.Errorf("%s runs %q (%v), want %q", line, ran, err, want)
		}
	}
}

// TestPluginPolicy: an entry that names two programs allows neither.
func TestPluginPolicy(t *testing.T) {
	t.Parallel()
	p := &Preference{Policy: "Allowlist", Allowed: []Entry{{Name: "one", Command: "two"}}}
	if got := p.PluginPolicy(); got.PolicyType != "DenyAll" || len(got.Allowlist) != 0 {
		t.Errorf("%+v", got)
	}
	p.Allowed = append(p.Allowed, Entry{Command: "three"}, Entry{Name: "four"})
	got := p.PluginPolicy()
	var commands []string
	for _, e := range got.Allowlist {
		commands = append(commands, e.Command)
	}
	if got.PolicyType != "Allowlist" || !slices.Equal(commands, []string{"three", "four"}) {
		t.Errorf("%+v", got)
	}
}
