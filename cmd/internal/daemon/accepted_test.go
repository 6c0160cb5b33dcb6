package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestAccepted: flags without effect take what upstream's take, say so in --help, and only those that are given are warned of.
func TestAccepted(t *testing.T) {
	t.Parallel()
	a := Accepted{Values: []string{"feature-gates", "cert-dir"}, Switches: []string{"permit-port-sharing", "watch-cache"}, Files: []string{"tracing-config-file"}}
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{"--feature-gates A=true", "--feature-gates"},
		{"--permit-port-sharing --feature-gates=", "--feature-gates --permit-port-sharing"},
		{"--watch-cache=false", "--watch-cache"},
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		a.AddFlags(fs)
		if n := strings.Count(fs.FlagUsages(), "without effect"); n != 5 {
			t.Errorf("%d flags say so", n)
		}
		if err := fs.Parse(strings.Fields(c.args)); err != nil || fs.NArg() > 0 {
			t.Errorf("%s: %v, %v", c.args, err, fs.Args())
		}
		var out strings.Builder
		a.Warn(fs, slog.New(slog.NewTextHandler(&out, nil)))
		_, got, _ := strings.Cut(strings.TrimSpace(out.String()), "flags=")
		if strings.Trim(got, `"[]`) != c.want {
			t.Errorf("%s: %q", c.args, &out)
		}
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.AddFlags(fs)
	if err := fs.Parse([]string{"--tracing-config-file=/nowhere/x"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(fs); err == nil || !strings.Contains(err.Error(), "--tracing-config-file: open /nowhere/x") {
		t.Errorf("a file that is missing: %v", err)
	}
}
