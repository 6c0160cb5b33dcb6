package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// profileSpan is how long a load is recorded, from its beginning; a shorter load is followed by rest.
const profileSpan = 2 * time.Second

// profile begins to record what the API server does into dir, as STEP.cpu and, from the beginning and end of the load,
// STEP.allocs.0 and STEP.allocs.1 (`go tool pprof -sample_index=alloc_space -base STEP.allocs.0 STEP.allocs.1`). The
// caller calls end after the load. Without dir it does nothing.
func (s *server) profile(ctx context.Context, dir, step string) (end func() error) {
	if dir == "" {
		return func() error { return nil }
	}
	name := filepath.Join(dir, strings.NewReplacer(" ", "-", ",", "").Replace(step))
	first := s.save(ctx, "allocs", name+".allocs.0")
	var cpu error
	var done sync.WaitGroup
	done.Go(func() {
		cpu = s.save(ctx, "profile?seconds="+strconv.Itoa(int(profileSpan.Seconds())), name+".cpu")
	})
	return func() error {
		done.Wait()
		for _, err := range []error{first, cpu} {
			if err != nil {
				return err
			}
		}
		return s.save(ctx, "allocs", name+".allocs.1")
	}
}

// save writes one of the API server's profiles to a file.
func (s *server) save(ctx context.Context, profile, file string) error {
	resp, err := s.load.open(ctx, request{method: http.MethodGet, path: "/debug/pprof/" + profile})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
