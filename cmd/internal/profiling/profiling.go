// Package profiling serves profiles of a component's own process. Components that show none do without the package and
// what it brings along.
package profiling

import (
	"context"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"github.com/spf13/pflag"
)

// Flags holds the flags of profiling, under upstream's names.
type Flags struct {
	// Enabled serves the profiles, Contention records for them where goroutines block, too.
	Enabled, Contention bool
}

// AddFlags registers the flags. Recording what blocks costs time in every lock and channel, so that it is off here in
// the scheduler too, where upstream turns it on.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.Enabled, "profiling", true, "Serve profiles at /debug/pprof/, to those who are authorized for it.")
	fs.BoolVar(&f.Contention, "contention-profiling", false,
		"Record for the profile \"block\" where the process waits for locks and channels, if --profiling is on.")
}

// Start begins to record what the flags ask for.
func (f Flags) Start() {
	if f.Enabled && f.Contention {
		runtime.SetBlockProfileRate(1)
	}
}

// longest bounds the time that a profile records, whatever a client asks for in "seconds": one of the CPU, or a trace,
// keeps others from theirs.
const longest = 10 * time.Minute

// Paths are where the profiles are served; none unless enabled.
func (f Flags) Paths() map[string]http.Handler {
	if !f.Enabled {
		return nil
	}
	paths := map[string]http.HandlerFunc{
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	}
	bounded := map[string]http.Handler{}
	for path, h := range paths {
		bounded[path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), longest)
			defer cancel()
			h(w, r.WithContext(ctx))
		})
	}
	return bounded
}
