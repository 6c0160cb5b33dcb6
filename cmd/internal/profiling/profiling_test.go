package profiling

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestOff(t *testing.T) {
	t.Parallel()
	if paths := (Flags{}).Paths(); len(paths) != 0 {
		t.Errorf("%d paths", len(paths))
	}
}

// However long a client wants to have recorded, it ends.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, w := time.Now(), httptest.NewRecorder()
		Flags{Enabled: true}.Paths()["/debug/pprof/"].ServeHTTP(w,
			httptest.NewRequest(http.MethodGet, "/debug/pprof/heap?seconds=99999999", nil))
		if took := time.Since(begun); w.Code == http.StatusOK || took != longest {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
}
