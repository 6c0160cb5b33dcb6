package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authnv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/csrapproving"
	"bonsai/pkg/controller/csrsigning"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/notify"
)

// cluster is an API server that knows a bootstrap token, with the controllers that approve and sign. Certificates hold
// for half a minute, and are dated back, so that each is due for renewal as soon as it is there.
type cluster struct {
	*controllertest.Cluster
	client *apiclient.Client
}

const bootstrapToken = "abcdef.0123456789abcdef"

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: controllertest.Start(t)}
	c.client = c.Client(t)
	manager, err := apiclient.New(c.Manager, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	// What kubeadm and every guide of TLS bootstrapping give: bootstrappers may ask, theirs and nodes' requests are
	// approved. The manager acts with one identity here.
	bindings := apiclient.NewResource(c.client, rbacv1.SchemeGroupVersion, "clusterrolebindings",
		&rbacv1.ClusterRoleBinding{})
	for name, b := range map[string]struct {
		role string
		to   rbacv1.Subject
	}{
		"ask": {"system:node-bootstrapper", rbacv1.Subject{Kind: "Group", Name: "system:bootstrappers"}},
		"approve": {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
			rbacv1.Subject{Kind: "Group", Name: "system:bootstrappers"}},
		"renew": {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
			rbacv1.Subject{Kind: "Group", Name: "system:nodes"}},
		"manager": {"system:controller:certificate-controller",
			rbacv1.Subject{Kind: "User", Name: "system:kube-controller-manager"}},
	} {
		b.to.APIGroup = rbacv1.GroupName
		if _, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects: []rbacv1.Subject{b.to}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = core.Secrets(c.client).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"},
			Type: corev1.SecretTypeBootstrapToken,
			StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef",
				"usage-bootstrap-authentication": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	d := controller.Deps{Client: manager, Informers: controller.NewInformers(manager),
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Workers: 1}
	approving, err := csrapproving.New(d)
	if err != nil {
		t.Fatal(err)
	}
	authority := func() (*csrsigning.Authority, error) { return csrsigning.Load(c.CAFile, c.CAKeyFile) }
	signing, err := csrsigning.New(d,
		csrsigning.Config{Duration: 30 * time.Second, Authorities: map[string]func() (*csrsigning.Authority, error){
			certificatesv1.KubeAPIServerClientKubeletSignerName: authority,
			certificatesv1.KubeletServingSignerName:             authority}})
	if err != nil {
		t.Fatal(err)
	}
	running(t, func(ctx context.Context) error {
		d.Informers.Run(ctx)
		return nil
	})
	running(t, approving.Run)
	running(t, signing.Run)
	return c
}

func running(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
}

// whoAmI asks the API server over connection.
func whoAmI(t *testing.T, connection *rest.Config) (authnv1.UserInfo, error) {
	t.Helper()
	c, err := apiclient.New(connection, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	r, err := apiclient.NewResource(c, authnv1.SchemeGroupVersion, "selfsubjectreviews",
		&authnv1.SelfSubjectReview{}).Create(t.Context(), &authnv1.SelfSubjectReview{})
	return r.Status.UserInfo, err
}

// TestTLSBootstrap: a node with a bootstrap token and nothing else becomes system:node:n, gets itself a new certificate
// with the one that it has, and a serving certificate once somebody approves it
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/).
func TestTLSBootstrap(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	dir := t.TempDir()
	boot := clientcmdapi.NewConfig()
	boot.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Admin.Host, InsecureSkipTLSVerify: true}
	boot.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: bootstrapToken}
	boot.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	boot.CurrentContext = "c"
	s := &settings{options: &options{bootstrapKubeconfig: filepath.Join(dir, "bootstrap"),
		kubeconfig: filepath.Join(dir, "kubeconfig"), certDir: filepath.Join(dir, "pki")},
		file: &kubeletconfig.KubeletConfiguration{RotateCertificates: true}}
	if err := clientcmd.WriteToFile(*boot, s.bootstrapKubeconfig); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	id, err := connect(t.Context(), s, "n", prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := whoAmI(t,
		id.connection); err != nil || who.Username != "system:node:n" || len(who.Groups) == 0 ||
		who.Groups[0] != "system:nodes" {
		t.Errorf("%+v, %v", who, err)
	}
	first := id.certificates.Current()
	running(t, id.certificates.Run)
	controllertest.Eventually(t, "another client certificate", func() string {
		if now := id.certificates.Current(); now == nil || now.Leaf.Equal(first.Leaf) {
			return "the first one"
		}
		return ""
	})
	// The link leads to the new one, so that the next start has it; and the connection uses it.
	if path, err := os.Readlink(filepath.Join(s.certDir, "kubelet-client-current.pem")); err != nil ||
		filepath.Dir(path) != s.certDir {
		t.Errorf("%s, %v", path, err)
	}
	if who, err := whoAmI(t, id.connection); err != nil || who.Username != "system:node:n" {
		t.Errorf("with the new certificate: %+v, %v", who, err)
	}
	api, err := kubeclient.New(id.connection)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := servingCertificates(s, api, "n", func() []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	}, notify.New(), prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	running(t, serving.Run)
	requests := apiclient.NewResource(c.client, certificatesv1.SchemeGroupVersion, "certificatesigningrequests",
		&certificatesv1.CertificateSigningRequest{})
	controllertest.Eventually(t, "the serving certificate", func() string {
		if cert := serving.Current(); cert != nil {
			if err := cert.Leaf.VerifyHostname("10.0.0.1"); err != nil {
				t.Fatal(err)
			}
			return ""
		}
		all, err := requests.List(t.Context(), "",
			metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if len(r.Status.Conditions) == 0 {
				r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
					{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
				if _, err := requests.UpdateSub(t.Context(), r, "approval"); err != nil {
					t.Fatal(err)
				}
			}
		}
		return "requested"
	})
}
