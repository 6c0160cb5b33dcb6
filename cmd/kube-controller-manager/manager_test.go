package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// world is a cluster with the manager running and every new pod becoming ready at once.
type world struct {
	*apiclient.Client
	admin *rest.Config
	ips   int
}

// TestManager runs all controllers, each with its own service account, against a real API server.
func TestManager(t *testing.T) {
	t.Parallel()
	c := controllertest.Start(t)
	cloud := filepath.Join(t.TempDir(), "cloud.yaml")
	if err := os.WriteFile(cloud, []byte("loadBalancerCIDRs: [10.200.0.0/29]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newCommand()
	flags := []string{"--kubeconfig=" + c.Kubeconfig, "--secure-port=0", "--use-service-account-credentials",
		"--controllers=*,tokencleaner",
		"--root-ca-file=" + c.CAFile, "--service-account-private-key-file=" + c.KeyFile, "--allocate-node-cidrs",
		"--cluster-cidr=10.244.0.0/16",
		"--service-cluster-ip-range=10.96.0.0/16", "--cloud-config=" + cloud, "--node-monitor-grace-period=3s",
		"--node-startup-grace-period=3s", "-v=2"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	cmd.SetArgs(flags)
	// The manager sets client-go's logger before it first says something; only then may the test use client-go too.
	log := &firstWrite{Writer: os.Stderr, done: make(chan struct{})}
	cmd.SetErr(log)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the manager does not stop")
		}
	})
	select {
	case <-log.done:
	case err := <-done:
		done <- nil
		t.Fatalf("the manager ended with %v", err)
	}
	w := &world{Client: c.Client(t), admin: c.Admin}
	t.Run("namespace", w.namespace)
	t.Run("rollout", w.rollout)
	t.Run("endpoints", w.endpoints)
	t.Run("garbage", w.garbage)
	t.Run("bad references", w.badReferences)
	t.Run("custom resources", w.customResources)
	t.Run("a namespace beside a dead aggregated server", w.namespaceBesideDead)
	t.Run("replication controller", w.replicationController)
	t.Run("node", w.node)
	t.Run("daemon set", w.daemonSet)
	t.Run("stateful set", w.statefulSet)
	t.Run("jobs", w.jobs)
	t.Run("orphaned pods of jobs", w.orphanedPods)
	t.Run("cron jobs", w.cronJobs)
	t.Run("quotas", w.quotas)
	t.Run("token", w.token)
	t.Run("load balancer", w.balancer)
	t.Run("storage version migrations", w.migration)
}

// firstWrite is a writer that tells when it was first written to.
type firstWrite struct {
	io.Writer
	once sync.Once
	done chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.done) })
	return w.Writer.Write(p)
}

// makeNamespace returns a fresh namespace with its service account.
func (w *world) makeNamespace(t *testing.T, name string) string {
	t.Helper()
	if _, err := core.Namespaces(w.Client).Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the default service account", func() string {
		_, err := core.ServiceAccounts(w.Client).Get(t.Context(), name, "default")
		return text(err)
	})
	return name
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// namespace: the root CA arrives; deletion waits for what has a finalizer, says so, and takes everything.
func (w *world) namespace(t *testing.T) {
	ns := w.makeNamespace(t, "t-namespace")
	controllertest.Eventually(t, "the root CA", func() string {
		_, err := core.ConfigMaps(w.Client).Get(t.Context(), ns, "kube-root-ca.crt")
		return text(err)
	})
	held := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held", Finalizers: []string{"example.com/hold"}}}
	if _, err := core.ConfigMaps(w.Client).Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := core.Namespaces(w.Client).Delete(t.Context(), "", ns, ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the conditions of a stuck namespace", func() string {
		n, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
		if err != nil {
			return err.Error()
		}
		all := ""
		for _, c := range n.Status.Conditions {
			all += string(c.Status) + " " + c.Message + "; "
		}
		for _, want := range []string{"True Some resources are remaining: configmaps. has 1 resource instances",
			"True Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"} {
			if !strings.Contains(all, want) {
				return all
			}
		}
		return ""
	})
	if _, err := core.ConfigMaps(w.Client).Patch(t.Context(), ns, "held", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the namespace to be gone", func() string {
		_, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint("still there: ", err)
	})
}

// token: a token secret is filled with a token that the server accepts, and goes with its account.
func (w *world) token(t *testing.T) {
	ns := w.makeNamespace(t, "t-token")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tok",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "bot"}},
		Type: corev1.SecretTypeServiceAccountToken}
	if _, err := core.ServiceAccounts(w.Client).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bot"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Secrets(w.Client).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the token", func() string {
		s, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok")
		if err != nil || strings.Count(string(s.Data["token"]), ".") != 2 {
			return fmt.Sprint("no token yet ", err)
		}
		return ""
	})
	s, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(w.admin)
	config.BearerToken = string(s.Data["token"])
	bot, err := apiclient.New(config, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.ServiceAccounts(bot).Get(t.Context(), ns, "bot"); !apierrors.IsForbidden(err) {
		t.Errorf("with the token: %v", err)
	}
	if s, err = core.Secrets(w.Client).Get(t.Context(), ns, "tok"); err != nil ||
		s.Labels["kubernetes.io/legacy-token-last-used"] != time.Now().UTC().Format(time.DateOnly) {
		t.Errorf("its use is not noted: %v, %v", s.Labels, err)
	}
	if err := core.ServiceAccounts(w.Client).Delete(t.Context(), ns, "bot", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the secret to go with its account", func() string {
		if _, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok"); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}
