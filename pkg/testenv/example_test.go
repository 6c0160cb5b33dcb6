package testenv_test

import (
	"context"
	"log"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bonsai/pkg/testenv"
)

// One environment for all tests of a package: started in TestMain, reset before each test.
func Example() {
	ctx := context.Background()
	env, err := testenv.Start(ctx, testenv.Config{BinDir: "/usr/local/lib/bonsai"})
	if err != nil {
		log.Fatal(err)
	}
	defer env.Stop()
	config, err := env.Client()
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)

	_ = func(t *testing.T) {
		if err := env.Reset(ctx, ""); err != nil {
			t.Fatal(err)
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, settings, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkStart starts and stops an environment.
func BenchmarkStart(b *testing.B) {
	dir := binaries(b)
	for b.Loop() {
		env, err := testenv.Start(b.Context(), testenv.Config{BinDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := env.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkReset resets an environment in which a Deployment was made.
func BenchmarkReset(b *testing.B) {
	env, client := start(b)
	for b.Loop() {
		b.StopTimer()
		if _, err := client.AppsV1().Deployments("default").Create(b.Context(), web(),
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		eventually(b, pods(b.Context(), client, "default", 2))
		b.StartTimer()
		if err := env.Reset(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
	}
}
