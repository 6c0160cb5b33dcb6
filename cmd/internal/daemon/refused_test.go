package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestRefused: a flag that protects and is not built ends the start with its name and purpose, and with its missing
// file; values that ask for nothing are taken.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := Refused{
		{Name: "encryption-config", Would: "encrypt secrets", File: true},
		{Name: "reload", Would: "read it again", Usual: []string{"false"}, Switch: true},
		{Name: "bytes", Would: "bound connections", Usual: []string{"0"}},
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"", nil},
		{"--encryption-config= --reload=false --bytes=0", nil},
		{"--encryption-config=/nowhere/x",
			[]string{"--encryption-config=/nowhere/x is not supported: it would encrypt secrets",
				"--encryption-config: open /nowhere/x: no such file"}},
		{"--reload", []string{"--reload=true"}},
		{"--bytes=5 --bytes=0 --reload", []string{"--bytes=5", "bound connections", "--reload=true"}},
		{"--encryption-config=refused_test.go", []string{"--encryption-config=refused_test.go is not supported"}},
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.AddFlags(fs)
		if err := fs.Parse(strings.Fields(c.args)); err != nil || fs.NArg() > 0 {
			t.Errorf("%s: %v, %v", c.args, err, fs.Args())
		}
		err := r.Check(fs)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.args, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", c.args, err, want)
			}
		}
	}
}
