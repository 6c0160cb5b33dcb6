package runtimeclass

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// listOnly is a server without streaming lists.
type listOnly struct{}

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

func TestHandler(t *testing.T) {
	t.Parallel()
	list := &nodev1.RuntimeClassList{
		Items: []nodev1.RuntimeClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "kata", ResourceVersion: "1"}, Handler: "kata-fc"}}}
	c, err := New(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}, listOnly{}))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name *string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{RuntimeClassName: name}} }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, pod := range map[string]*corev1.Pod{"none": of(nil), "empty": of(new(""))} {
		if h, err := c.Handler(ended, pod); h != "" || err != nil {
			t.Errorf("%s: %q, %v", name, h, err)
		}
	}
	if _, err := c.Handler(ended, of(new("kata"))); err == nil {
		t.Error("a handler before any class was read")
	}
	done := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- c.Run(ctx) }()
	if h, err := c.Handler(t.Context(), of(new("kata"))); h != "kata-fc" || err != nil {
		t.Errorf("%q, %v", h, err)
	}
	if _, err := c.Handler(t.Context(),
		of(new("gone"))); !apierrors.IsNotFound(err) || err.Error() != `runtimeclass.node.k8s.io "gone" not found` {
		t.Errorf("gone: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
