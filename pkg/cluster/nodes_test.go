package cluster

import (
	"io"
	"strings"
	"testing"
)

// TestAddNodeLabels: what the API server would not take is refused before there is a node, which would never be Ready.
func TestAddNodeLabels(t *testing.T) {
	t.Parallel()
	err := AddNode(t.Context(), t.TempDir(), map[string]string{"a b": "c"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `--labels: Invalid value: "a b"`) {
		t.Error(err)
	}
}
