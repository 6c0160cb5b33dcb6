package completion

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"bash": "complete -o default -F __start_kubectl kubectl", "zsh": "#compdef kubectl",
		"fish": "complete -c kubectl", "powershell": "Register-ArgumentCompleter -CommandName 'kubectl'",
		"BASH": "__start_kubectl",
	} {
		got, code := writetest.Run(t, NewCommand, "", "", "completion", shell)
		if code != 0 || !strings.Contains(got, want) {
			t.Errorf("%s: code %d, no %q in %d bytes", shell, code, want, len(got))
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	const hint = "\nSee 'kubectl completion -h' for help and examples\n"
	for args, want := range map[string]string{
		"":         "error: Shell not specified." + hint,
		"bash zsh": "error: Too many arguments. Expected only the shell type." + hint,
		"tcsh":     "error: Unsupported shell type \"tcsh\"." + hint,
	} {
		got, code := writetest.Run(t, NewCommand, "", "", append([]string{"completion"}, strings.Fields(args)...)...)
		if got != want || code != 1 {
			t.Errorf("%q: code %d, %q, want %q", args, code, got, want)
		}
	}
}
