package testenv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"bonsai/pkg/testenv"
)

// binaries is bin/ of the repository, or $BONSAI_BIN; a test without them is skipped.
func binaries(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("BONSAI_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skipf("SKIPPED: %v (make tools components)", err)
		}
	}
	return dir
}

// start starts an environment for the test's time.
func start(t testing.TB) (*testenv.Environment, *kubernetes.Clientset) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env, err := testenv.Start(ctx, testenv.Config{BinDir: binaries(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := env.Client()
	if err != nil {
		t.Fatal(err)
	}
	return env, kubernetes.NewForConfigOrDie(config)
}

// eventually waits until problem returns nil.
func eventually(t testing.TB, problem func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		err := problem()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// web is a Deployment of two pods.
func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web"}}}}}}
}

// pods tells if there are not so many pods.
func pods(ctx context.Context, client kubernetes.Interface, namespace string, want int) func() error {
	return func() error {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != want {
			err = fmt.Errorf("there are %d pods in %s, not %d", len(list.Items), namespace, want)
		}
		return err
	}
}

// gone tells if an object is still there.
func gone(_ any, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("it is still there"), err)
}

// TestControllers: what an API server alone does not do: pods are made for Deployments and collected with them, the
// scheduler says why it has no node for them, a namespace goes with all that is in it.
func TestControllers(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	ctx := t.Context()
	if _, err := client.AppsV1().Deployments("default").Create(ctx, web(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, pods(ctx, client, "default", 2))
	eventually(t, func() error {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && (len(list.Items[0].Status.Conditions) == 0 ||
			list.Items[0].Status.Conditions[0].Reason != corev1.PodReasonUnschedulable) {
			err = fmt.Errorf("the scheduler says %v", list.Items[0].Status.Conditions)
		}
		return err
	})
	if err := client.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, pods(ctx, client, "default", 0))

	if _, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("team").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return gone(client.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{})) })
}

// definition is of widgets.example.com.
func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "widgets.example.com"},
			"spec": map[string]any{"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"plural": "widgets", "kind": "Widget"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{
						"openAPIV3Schema": map[string]any{"type": "object",
							"x-kubernetes-preserve-unknown-fields": true}}}}}}}
}

// TestReset: what was made is gone, finalizers or not, what was changed or deleted is as it was; what a snapshot has
// comes back; definitions come and go with their objects; and the environment works on.
func TestReset(t *testing.T) {
	t.Parallel()
	env, client := start(t)
	ctx := t.Context()
	config, err := env.Client()
	if err != nil {
		t.Fatal(err)
	}
	objects := dynamic.NewForConfigOrDie(config)
	definitions := objects.Resource(
		schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"})
	widgets := objects.Resource(
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	widget := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w", "finalizers": []any{"example.com/never"}}}}

	if err := env.Reset(ctx, "no-such"); err == nil ||
		!strings.Contains(err.Error(), `there is no snapshot "no-such"`) {
		t.Error(err)
	}
	if err := env.Snapshot(ctx, "../x"); err == nil {
		t.Error("a snapshot outside of the directory")
	}
	if err := env.Snapshot(ctx, "started"); err == nil || !strings.Contains(err.Error(), `"started"`) {
		t.Errorf("a snapshot in place of the first one: %v", err)
	}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := env.Snapshot(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := env.Reset(ctx, "no-such/mine"); err == nil || !strings.Contains(err.Error(), `"no-such/mine"`) {
		t.Errorf("a reset to a path: %v", err)
	}
	for range 3 {
		labelled := namespace.DeepCopy()
		labelled.ResourceVersion, labelled.Labels = "", map[string]string{"changed": "yes"}
		if _, err := client.CoreV1().Namespaces().Update(ctx, labelled, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := definitions.Create(ctx, definition(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { _, err := widgets.Create(ctx, widget, metav1.CreateOptions{}); return err })
		if _, err := client.AppsV1().Deployments("default").Create(ctx, web(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, pods(ctx, client, "default", 2))
		if err := client.CoreV1().ConfigMaps("default").Delete(ctx, "kept", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := env.Reset(ctx, "mine"); err != nil {
			t.Fatal(err)
		}
		if now, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil ||
			now.UID != namespace.UID || now.Labels["changed"] != "" {
			t.Errorf("the namespace: %v, %v", now, err)
		}
		if _, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if err := gone(client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})); err != nil {
			t.Error(err)
		}
		if err := gone(definitions.Get(ctx, "widgets.example.com", metav1.GetOptions{})); err != nil {
			t.Error(err)
		}
		// A controller may have been about to make a pod; it is collected.
		eventually(t, pods(ctx, client, "default", 0))
		eventually(t, func() error { return gone(widgets.List(ctx, metav1.ListOptions{})) })
	}
	if err := env.Reset(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := gone(client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})); err != nil {
		t.Error(err)
	}
}

// TestStartFails: a program that ends is told of with its last words, and nothing is left.
func TestStartFails(t *testing.T) {
	t.Parallel()
	parent, err := os.MkdirTemp("", "t") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "env")
	c := testenv.Config{BinDir: binaries(t), Dir: dir, Flags: map[string][]string{"kube-apiserver": {"--no-such-flag"}}}
	if _, err := testenv.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Error(err)
	}
	if _, err := testenv.Open(dir); err == nil {
		t.Error("it can be opened")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	c.Dir = filepath.Join(parent, strings.Repeat("x", 100))
	if _, err := testenv.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestServe: an environment in the background, as the command has it: a second one is refused while it runs, what a
// killed one has left is taken away, and a stop leaves nothing.
func TestServe(t *testing.T) {
	t.Parallel()
	bin := binaries(t)
	parent, err := os.MkdirTemp("", "t") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "env")
	if found, err := testenv.StopServed(dir); found || err != nil {
		t.Errorf("stopped: %v, %v", found, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil { // left
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	launch := func() error { return testenv.Launch(ctx, dir, served(dir, bin)) }
	if err := launch(); err != nil {
		t.Fatal(err)
	}
	defer func() { // if the test has ended before it
		if _, err := testenv.StopServed(dir); err != nil {
			t.Error(err)
		}
	}()
	if err := launch(); err == nil || !strings.Contains(err.Error(), "an environment runs, or is starting, in "+dir) {
		t.Error(err)
	}
	env, err := testenv.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Reset(ctx, ""); err != nil {
		t.Error(err)
	}
	if found, err := testenv.StopServed(dir); !found || err != nil {
		t.Errorf("stopped: %v, %v", found, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// served is the command of a process that serves an environment in dir.
func served(dir, bin string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestServed$", "-test.v=false") //nolint:gosec // this program again
	cmd.Env = append(os.Environ(), servedVariable+"="+dir, "BONSAI_BIN="+bin)
	return cmd
}

// leftIn returns the processes whose working directory is or was dir.
func leftIn(dir string) (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.TrimSuffix(at, " (deleted)") == dir {
			left = append(left, link)
		}
	}
	return left
}

// TestServeOnce: of two launches at the same time one succeeds, and says nothing of the other's environment. A stop
// meanwhile ends what starts. Either leaves no process and no file.
func TestServeOnce(t *testing.T) {
	t.Parallel()
	bin := binaries(t)
	parent, err := os.MkdirTemp("", "t") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := func(dir string) chan error {
		ended := make(chan error, 1)
		go func() { ended <- testenv.Launch(ctx, dir, served(dir, bin)) }()
		return ended
	}
	stop := func(dir string) {
		t.Helper()
		if found, err := testenv.StopServed(dir); !found || err != nil {
			t.Errorf("stopped: %v, %v", found, err)
		}
		if left := leftIn(dir); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory: %v", err)
		}
	}

	twice := filepath.Join(parent, "twice")
	one, other := begin(twice), begin(twice)
	refused, succeeded := <-one, <-other
	if refused == nil {
		refused, succeeded = succeeded, refused
	}
	if succeeded != nil || refused == nil ||
		refused.Error() != "an environment runs, or is starting, in "+twice {
		t.Errorf("two at the same time: %v and %v", succeeded, refused)
	}
	stop(twice)

	early := filepath.Join(parent, "early")
	launched := begin(early)
	eventually(t, func() error { _, err := os.Stat(filepath.Join(early, "etcd.log")); return err })
	stop(early)
	if err := <-launched; err != nil && !strings.Contains(err.Error(), "was stopped") {
		t.Errorf("stopped while it started: %v", err)
	}
}

// servedVariable makes TestServed the process that serves, in the directory that it names.
const servedVariable = "TESTENV_SERVED"

func TestServed(t *testing.T) {
	dir := os.Getenv(servedVariable)
	if dir == "" {
		t.Skip("the background process of TestServe")
	}
	if err := testenv.Serve(t.Context(), testenv.Config{BinDir: binaries(t), Dir: dir}); err != nil {
		t.Fatal(err)
	}
}
