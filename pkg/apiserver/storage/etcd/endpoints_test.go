package etcd

import (
	"strings"
	"testing"
)

// TestNoPasswords: an endpoint that is no URL ends the start, and the error does not show its password.
func TestNoPasswords(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"http://u:secret@h:port", "http://u:%secret@h", "http://u:sec/secret@h:1"} {
		if _, err := dial(t.Context(), Config{Endpoints: []string{endpoint}}); err == nil ||
			strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
