package operator

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"bonsai/test/ecosystem/operator/v1"
	"bonsai/test/ecosystem/operator/v1alpha1"
)

// patience bounds every wait: generous, since the machine is shared; a wait ends when its condition holds.
const patience = 60 * time.Second

// onCluster says whether the test runs on the cluster of $KUBECONFIG, which has controllers and nodes, instead of
// envtest's control plane. The variable is envtest's.
func onCluster() bool { return os.Getenv("USE_EXISTING_CLUSTER") == "true" }

// suite is a control plane with the operator's definition and webhooks installed.
type suite struct {
	env    *envtest.Environment
	scheme *runtime.Scheme
	// client reads from the server, not from a manager's cache.
	client client.Client
	// namespace is the suite's own.
	namespace string
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	v1.AddToScheme(s)
	v1alpha1.AddToScheme(s)
	return s
}

// newEnvironment is envtest with our binaries as its assets, unless $KUBEBUILDER_ASSETS names others. It is not
// started.
func newEnvironment(t testing.TB) *envtest.Environment {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kube-apiserver")); err != nil && os.Getenv("KUBEBUILDER_ASSETS") == "" &&
		!onCluster() {
		t.Skip("SKIPPED: no binaries for the control plane; run `make tools components`")
	}
	return &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		AttachControlPlaneOutput: testing.Verbose(),
		Scheme:                   newScheme(t),
		CRDDirectoryPaths:        []string{"config/crd.yaml"},
		ErrorIfCRDPathMissing:    true,
		CRDInstallOptions:        envtest.CRDInstallOptions{CleanUpAfterUse: true},
		WebhookInstallOptions:    envtest.WebhookInstallOptions{Paths: []string{"config/webhooks.yaml"}},
	}
}

// start starts the control plane, to be stopped at the test's end.
func start(t *testing.T) *suite {
	t.Helper()
	env := newEnvironment(t)
	began := time.Now()
	config, err := env.Start()
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("control plane with definition and webhooks: %.2f s", time.Since(began).Seconds())
	s := &suite{env: env, scheme: env.Scheme, namespace: "default"}
	if s.client, err = client.New(config, client.Options{Scheme: s.scheme}); err != nil {
		t.Fatal(err)
	}
	if onCluster() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
		if err := s.client.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		s.namespace = ns.Name
		t.Cleanup(func() {
			if err := s.client.Delete(context.Background(), ns); err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

// manage starts a manager as an operator's main function does, and returns what stops it, which the test's end does at
// the latest. Metrics are served at metricsAddress; "0" serves none. Of the managers of a suite, one at a time serves
// the webhooks.
func (s *suite) manage(t *testing.T, metricsAddress string, withWebhooks bool) (mgr ctrl.Manager, stop func()) {
	t.Helper()
	hooks := s.env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(s.env.Config, ctrl.Options{
		Scheme: s.scheme,
		Logger: logger(t),
		Metrics: metricsserver.Options{BindAddress: metricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir}),
		LeaderElection: true, LeaderElectionID: "website-operator", LeaderElectionNamespace: s.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&reconciler{Client: mgr.GetClient(), events: mgr.GetEventRecorder("website-controller")}).setup(
		mgr); err != nil {
		t.Fatal(err)
	}
	if withWebhooks {
		if err := (webhooks{}).setup(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return mgr, stop
}

// logger is silent unless the tests are verbose.
func logger(t *testing.T) logr.Logger {
	if testing.Verbose() {
		return testr.New(t)
	}
	return logr.Discard()
}

// waitFor fails the test unless holds comes to return nil.
func waitFor(t *testing.T, what string, holds func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}
