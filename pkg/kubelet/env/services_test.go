package env

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/runtime"
)

// listed are Services that do not change.
type listed []corev1.Service

func (l listed) List(metav1.ListOptions) (apiruntime.Object, error) {
	return &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: l}, nil
}

func (listed) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported tells the reflector to list.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

func TestServicesOfAPod(t *testing.T) {
	t.Parallel()
	service := func(namespace, name string) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ExternalName: "dropped"}}
	}
	s, err := NewServices(listed{service("ns", "web"), service("default", "kubernetes"), service("default", "web"),
		service("other", "kubernetes")})
	if err != nil {
		t.Fatal(err)
	}
	of := func(ctx context.Context, namespace, source string) ([]string, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Annotations: map[string]string{runtime.AnnotationConfigSource: source}}}
		list, err := s.For(ctx, pod)
		var names []string
		for _, x := range list {
			names = append(names, x.Namespace+"/"+x.Name)
			if x.Spec.ExternalName != "" {
				t.Error("more of a Service is kept than its variables need")
			}
		}
		slices.Sort(names)
		return names, err
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := of(ended, "ns", "api"); err == nil {
		t.Error("a pod of the API server does not wait for the Services")
	}
	if names, err := of(ended, "ns", runtime.SourceFile); err != nil || len(names) != 0 {
		t.Error("a static pod waits for the Services:", names, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	if !cache.WaitForCacheSync(t.Context().Done(), s.informer.HasSynced) {
		t.Fatal("not synced")
	}
	for namespace, want := range map[string][]string{"ns": {"default/kubernetes", "ns/web"},
		"default": {"default/kubernetes", "default/web"}, "none": {"default/kubernetes"}} {
		if names, err := of(t.Context(), namespace, "api"); err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: %v, %v; want %v", namespace, names, err, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
