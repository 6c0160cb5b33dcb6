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
		return fmt.Sprintf("time=%s level=%s msg=%q\n",
			began.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339Nano), level, text)
	}
	n1 := line(-5, "ERROR", "of before") + line(1, "ERROR", "first") + line(2, "INFO", "level=ERROR is quoted") +
		line(3, "ERROR", "second") +
		line(4, "WARN", "a warning") + line(5, "ERROR", "third") + line(6, "ERROR", "fourth "+strings.Repeat("x", 1000))
	for name, log := range map[string]string{"n1": n1, "n2": line(1, "WARN", "only a warning")} {
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
		"of before": false, "first": false, "a quoted": false, "is quoted": false, `msg="a warning"`: false,
		strings.Repeat("x", 500): false} {
		if strings.Contains(err, text) != want {
			t.Errorf("%q: %v, not %v, in\n%s", text, !want, want, err)
		}
	}
}
