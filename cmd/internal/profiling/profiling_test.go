package profiling

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/pflag"
)

// TestPaths: profiles are there unless they are turned off.
func TestPaths(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"--profiling=true": http.StatusOK, "--profiling=false": http.StatusNotFound} {
		f, fs := Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.AddFlags(fs)
		if err := fs.Parse([]string{args}); err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		for path, h := range f.Paths() {
			mux.Handle(path, h)
		}
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("%s: %s gives %d", args, path, w.Code)
			}
		}
	}
}
