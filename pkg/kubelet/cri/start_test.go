package cri

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// starter tells that it was asked to start a container, and answers when it may or when the caller has given up.
type starter struct {
	fakeRuntime
	asked, answer chan struct{}
}

func (s starter) StartContainer(ctx context.Context,
	_ *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	s.asked <- struct{}{}
	select {
	case <-s.answer:
		return &runtimeapi.StartContainerResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A start that has begun goes to its end although nobody wants it any more; none begins then.
func TestAStartIsNotCutOff(t *testing.T) {
	t.Parallel()
	s := starter{asked: make(chan struct{}, 1), answer: make(chan struct{})}
	c, err := Dial(t.Context(), Config{Endpoint: serve(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.asked
		cancel()
		s.answer <- struct{}{}
	}()
	if err := c.StartContainer(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := c.StartContainer(ctx, "a"); !errors.Is(err, context.Canceled) || len(s.asked) > 0 {
		t.Errorf("%v, asked %d times", err, len(s.asked))
	}
}

func TestLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		ctx, stop := linger(parent, time.Minute)
		defer stop()
		stopped, end := linger(parent, time.Minute)
		begun := time.Now()
		cancel()
		end()
		<-stopped.Done()
		if took := time.Since(begun); took != 0 {
			t.Errorf("stopped after %v", took)
		}
		<-ctx.Done()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("ended after %v", took)
		}
		// A bubble ends only when all its goroutines have: nothing waits on.
	})
}
