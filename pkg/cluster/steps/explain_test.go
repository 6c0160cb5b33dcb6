package steps

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestExplainNodes: a start that waits in vain for the nodes says what their kubelets complained of, in this start and
// at last.
func TestExplainNodes(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t) // of two nodes
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	line := func(seconds int, level, text string) string {
		return fmt.Sprintf("%s%s     123 file.go:7] %q component=\"kubelet\"\n", level,
			began.Add(time.Duration(seconds)*time.Second).Local().Format("0102 15:04:05.000000"), text)
	}
	n1 := line(-5, "E", "of before") + line(1, "E", "first") + line(2, "I", "E0101 is quoted") +
		line(3, "E", "second") +
		line(4, "W", "a warning") + line(5, "E", "third") + line(6, "E", "fourth "+strings.Repeat("x", 1000))
	for name, log := range map[string]string{"n1": n1, "n2": line(1, "W", "only a warning")} {
		if err := host.WriteFile(c.Layout().NodeLog(name, "kubelet"), []byte(log)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	s := NewStart(c.Layout(), c.NodeNames(), io.Discard)
	s.began = began
	err := s.explain(ctx, "Wait for the nodes", context.DeadlineExceeded).Error()
	for text, want := range map[string]bool{"the last errors of n1-kubelet:": true, "second": true, "third": true,
		"fourth": true, "only a warning": true,
		"of before": false, "first": false, "a quoted": false, "is quoted": false, `"a warning"`: false,
		strings.Repeat("x", 500): false} {
		if strings.Contains(err, text) != want {
			t.Errorf("%q: %v, not %v, in\n%s", text, !want, want, err)
		}
	}
}
