// Command conformance runs Kubernetes' own conformance suite against a two-node cluster of ours:
//
//	conformance run  [-focus REGEXP] [-kubectl ours|upstream] …   builds what is missing, starts the cluster, runs, records
//	conformance build [-data DIR] …                               only builds what is missing
//	conformance diff OLD NEW                                      compares two result files; newly failing specs are an error
//
// `make conformance` and `make conformance-diff` are how people call it. It lives in a module of its own, whose go.mod
// pins the suite's version, so that the product never depends on what it is measured with.
//
// The files: settings.go (what a run is told), tools.go and build.go (the suite's binaries and images, cached),
// cluster.go and pull.go (the cluster under test), suite.go and progress.go (ginkgo), report.go (its JSON), results.go
// and diff.go (RESULTS.md). The package images builds and serves the test images.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// errFailed says that the run itself worked and specs failed.
var errFailed = errors.New("specs failed")

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: conformance run|build|diff")
	}
	switch args[0] {
	case "run":
		s, err := parseSettings(args[1:])
		if err != nil {
			return err
		}
		return run(ctx, s)
	case "build":
		s, err := parseSettings(args[1:])
		if err != nil {
			return err
		}
		return s.buildMissing(ctx)
	case "diff":
		if len(args) != 3 {
			return errors.New("usage: conformance diff OLD NEW")
		}
		return diffFiles(args[1], args[2], os.Stdout)
	default:
		return fmt.Errorf("unknown command %q (run, build or diff)", args[0])
	}
}

// run is one whole run, from the missing binaries to the recorded result.
func run(ctx context.Context, s settings) error {
	if err := s.buildMissing(ctx); err != nil {
		return err
	}
	c, err := s.startCluster(ctx)
	if err != nil {
		return err
	}
	var r *result
	if err = s.pullFirst(ctx, c); err == nil {
		r, err = s.runSuite(ctx, c)
	}
	if !s.keep {
		err = errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	if err := s.record(r); err != nil {
		return err
	}
	if r.failed() > 0 {
		return fmt.Errorf("%d of %d %w", r.failed(), len(r.Specs), errFailed)
	}
	return nil
}
