package diff

import (
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

func TestParseProgram(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"":                            "diff -u -N LIVE MERGED",
		"  ":                          "diff -u -N LIVE MERGED",
		"meld":                        "meld LIVE MERGED",
		"colordiff -N --width=80":     "colordiff LIVE MERGED -N --width=80",
		"sh -c ;reboot $(x) /dev/sda": "sh LIVE MERGED -c, without ;reboot $(x) /dev/sda",
	} {
		p, leftOut := parseProgram(variable)
		got := strings.Join(slices.Concat([]string{p.name}, p.before, []string{"LIVE", "MERGED"}, p.after), " ")
		if len(leftOut) > 0 {
			got += ", without " + strings.Join(leftOut, " ")
		}
		if got != want {
			t.Errorf("%q: %s; want %s", variable, got, want)
		}
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nosuch-program":     `failed to run "nosuch-program": executable file not found in $PATH`,
		"/nosuch/program":    `failed to run "/nosuch/program": no such file or directory`,
		"/proc/self/environ": `failed to run "/proc/self/environ": permission denied`,
	} {
		if err := (program{name: name}).run(t.Context(), cli.IOStreams{}, "LIVE", "MERGED"); err == nil ||
			err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
