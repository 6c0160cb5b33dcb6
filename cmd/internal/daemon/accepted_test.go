package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestAccepted: flags without effect take what upstream's take, say so in --help, and only those that are given are
// warned of.
func TestAccepted(t *testing.T) {
	t.Parallel()
	a := AcceptedFlags{{Bools: []string{"permit-port-sharing", "watch-cache"}},
		{Strings: []string{"feature-gates", "cert-dir"}, Files: []string{"tracing-config-file"}}}
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

// TestAcceptedTypes: a malformed value is refused in the words that v1.36.3 refuses it in, though the flag has no
// effect.
func TestAcceptedTypes(t *testing.T) {
	t.Parallel()
	a := AcceptedFlags{{Ints: []string{"int"}, Int32s: []string{"int32"}, Uints: []string{"uint"},
		Maps: []string{"map"}, Lists: []string{"list"}, Durations: []string{"time"}, Bools: []string{"switch"}}}
	for arg, want := range map[string]string{
		"--int=x":            `parsing "x": invalid syntax`,
		"--int32=1.5":        `parsing "1.5": invalid syntax`,
		"--int32=4294967296": "value out of range",
		"--uint=-1":          `parsing "-1": invalid syntax`,
		"--map=abc":          "abc must be formatted as key=value",
		"--map=a=b,c=d":      "",
		"--time=abc":         `time: invalid duration "abc"`,
		"--time=5s":          "",
		"--switch=maybe":     `strconv.ParseBool: parsing "maybe": invalid syntax`,
		"--switch":           "",
		"--list=a,b":         "",
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		a.AddFlags(fs)
		err := fs.Parse([]string{arg})
		name, value, _ := strings.Cut(arg, "=")
		if want == "" {
			if err != nil {
				t.Error(arg, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), `invalid argument "`+value+`" for "`+name+`" flag: `) ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}
