package credentialprovider

import (
	"context"
	"os/exec"
	"testing"
)

// TestRunGroup: when the request ends, a program ends together with its children. The child here holds the output open,
// so Wait returns only if it ends, too.
func TestRunGroup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo started; wait")
	cmd.Stdout = &bounded{full: cancel}
	if err := runGroup(ctx, cmd); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
}

// TestRunGroupAlone: a program that ends in time has its own result, and nothing is killed afterwards.
func TestRunGroupAlone(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{"exit 0": "", "exit 3": "exit status 3"} {
		err := runGroup(t.Context(), exec.Command("sh", "-c", script))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if err := runGroup(t.Context(), exec.Command("/nonexistent")); err == nil {
		t.Error("a program that is missing runs")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
