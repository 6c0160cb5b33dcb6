package health

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestChecksRunTogether: two checks that wait for each other both come out, in their order.
func TestChecksRunTogether(t *testing.T) {
	t.Parallel()
	a, b := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(*http.Request) error {
		return func(*http.Request) error {
			close(mine)
			select {
			case <-other:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("alone")
			}
		}
	}
	h := New(slog.New(slog.DiscardHandler)).Paths("readyz", []Check{{"a", meet(a, b)}, {"b", meet(b, a)}})["/readyz"]
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
	if w.Code != http.StatusOK || w.Body.String() != "[+]a ok\n[+]b ok\nreadyz check passed\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
