package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Step is one step of a start.
type Step struct {
	Name string // what the user reads, in words that also fit into an error
	Run  func(context.Context) error
}

// New returns a step.
func New(name string, run func(context.Context) error) Step { return Step{Name: name, Run: run} }

// Start is a start of a cluster. It looks at the control sockets and logs of the cluster's processes, and changes
// nothing.
type Start struct {
	Printer
	layout plan.Layout
	nodes  []string // their names
}

// NewStart returns a start that begins now of the cluster with that layout and those nodes.
func NewStart(layout plan.Layout, nodes []string, out io.Writer) Start {
	return Start{Printer: NewPrinter(out), layout: layout, nodes: nodes}
}

// Of returns the same start for a cluster that has other nodes by now.
func (s Start) Of(nodes []string) Start {
	s.nodes = nodes
	return s
}

// Take takes steps in turn until one fails. Its error has the step's name, the cause and where the logs are. Each step
// that is done is progress for a context with patience (host.WithPatience).
func (s Start) Take(ctx context.Context, steps ...Step) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go s.watchProgress(ctx)
	for _, step := range steps {
		if err := s.Run(step.Name, func() error { return step.Run(ctx) }); err != nil {
			return s.explain(ctx, step.Name, err)
		}
		host.Progressed(ctx, step.Name)
	}
	return nil
}

// Value takes one step that finds something out, and returns that.
func Value[T any](ctx context.Context, s Start, name string, find func(context.Context) (T, error)) (T, error) {
	var found T
	err := s.Take(ctx, New(name, func(ctx context.Context) (err error) {
		found, err = find(ctx)
		return err
	}))
	return found, err
}

// explain says in which step a start failed, why, what the components that ended meanwhile wrote last, and the last
// errors of the kubelets.
func (s Start) explain(ctx context.Context, step string, err error) error {
	// a request that the end of ctx broke off says only that it was broken off
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	var epitaphs strings.Builder
	if !errors.Is(err, syscall.ENOSPC) { // whose error has them already (WatchSpace)
		for _, ended := range s.troubled(context.WithoutCancel(ctx)) {
			epitaphs.WriteString("\n" + ended.Epitaph())
		}
		epitaphs.WriteString(s.nodesErrors())
	}
	return fmt.Errorf("%s: %w%s%s", strings.ToLower(step), err, s.whereLogsAre(), &epitaphs)
}

// whereLogsAre is "" if the start failed before there were any.
func (s Start) whereLogsAre() string {
	logs := s.layout.At("logs")
	if _, err := os.Stat(logs); err != nil {
		return ""
	}
	return " (logs: " + logs + ")"
}
