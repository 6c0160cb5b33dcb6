package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiserver/authn/oidc/oidctest"
	"bonsai/pkg/apiserver/storage/encryption/kmstest"
)

// The files of a cluster in which others say who comes in, what they may, and by which key Secrets are kept.
const (
	issuersFile = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [try], certificateAuthority: %q}
  claimMappings:
    username: {expression: "'oidc:' + claims.sub"}
    groups: {claim: groups, prefix: "oidc:"}
`
	authorizersFile = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- type: Webhook
  name: outside.example.com
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: request.user.startsWith('oidc:')
- {type: RBAC, name: rbac}
`
	webhookFile = `apiVersion: v1
kind: Config
clusters: [{name: w, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: w, user: {}}]
contexts: [{name: w, context: {cluster: w, user: w}}]
current-context: w
`
	kmsFile = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - kms: {apiVersion: v2, name: outside, endpoint: %q}
  - identity: {}
`
	outsideCluster = `apiVersion: bonsai.io/v1alpha1
kind: Cluster
componentFlags:
  kube-apiserver:
    authentication-config: %s/issuers.yaml
    authorization-config: %s/authorizers.yaml
    encryption-provider-config: %s/kms.yaml
`
)

// TestOutside: an OpenID provider, an authorization webhook and a KMS plug-in at once, in a cluster of `bonsai up`.
func TestOutside(t *testing.T) {
	dir := t.TempDir()
	key := oidctest.NewRSA(t, "first")
	provider, plugin := oidctest.New(t, key), kmstest.New(t, "key-1").Start(t)
	var asked atomic.Int64
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		decide(w, r)
	}))
	t.Cleanup(webhook.Close)
	authority, err := json.Marshal(pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"issuers.yaml":     fmt.Sprintf(issuersFile, provider.URL, provider.Authority),
		"authorizers.yaml": fmt.Sprintf(authorizersFile, filepath.Join(dir, "webhook.yaml")),
		"webhook.yaml":     fmt.Sprintf(webhookFile, webhook.URL, authority),
		"kms.yaml":         fmt.Sprintf(kmsFile, plugin.Endpoint),
		"cluster.yaml":     fmt.Sprintf(outsideCluster, dir, dir, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := env{bin: cluster.bin, data: filepath.Join(dir, "outside"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	if out, err := e.command(4*time.Minute, "bonsai", "--data-dir", e.data, "--name", "outside", "up", "--egress=false",
		"--addons=coredns=false", "--config", filepath.Join(dir, "cluster.yaml")); err != nil {
		t.Fatal(out, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	admin := client(t, config)
	as := func(claims map[string]any) kubernetes.Interface {
		c := rest.AnonymousClientConfig(config)
		c.BearerToken = key.Sign(t, claims)
		return client(t, c)
	}
	jane := as(claimsOf(provider.URL, "try"))

	t.Run("who comes in", func(t *testing.T) {
		var who *authenticationv1.SelfSubjectReview
		waitFor(t, "the provider's keys", func() bool {
			who, err = jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
				&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			return err == nil
		})
		if u := who.Status.UserInfo; u.Username != "oidc:jane" || strings.Join(u.Groups, " ") !=
			"oidc:dev system:authenticated" {
			t.Errorf("she is %v", u)
		}
		_, err := as(claimsOf(provider.URL, "another")).CoreV1().ConfigMaps("default").List(t.Context(),
			metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("a token for another audience: %v", err)
		}
	})
	t.Run("what they may", func(t *testing.T) {
		if _, err := jane.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error("what the webhook allows:", err)
		}
		_, err := jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), ": not for jane") {
			t.Error("what the webhook denies:", err)
		}
		_, err = jane.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Error("what nobody decides:", err)
		}
		before := asked.Load()
		if _, err := admin.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if asked.Load() != before {
			t.Error("the webhook was asked about one whom its conditions leave out")
		}
	})
	t.Run("what is kept secret", func(t *testing.T) {
		secrets := admin.CoreV1().Secrets("default")
		if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"},
			StringData: map[string]string{"text": marker}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if plugin.Encrypts.Load() == 0 {
			t.Error("the plug-in encrypted nothing")
		}
		for _, verb := range []string{"stop", "start"} { // so that the plug-in is asked again
			if out, err := e.command(2*time.Minute, "bonsai", "--data-dir", e.data, verb); err != nil {
				t.Fatal(out, err)
			}
		}
		s, err := secrets.Get(t.Context(), "s", metav1.GetOptions{})
		if err != nil || string(s.Data["text"]) != marker {
			t.Errorf("after a start: %v", err)
		}
		if plugin.Decrypts.Load() == 0 {
			t.Error("the plug-in decrypted nothing")
		}
		if found := filesWith(t, filepath.Join(e.data, "etcd"), marker); len(found) > 0 {
			t.Errorf("a Secret's text is in %q", found)
		}
	})
}

// claimsOf are those of a user, with an audience.
func claimsOf(issuer, audience string) map[string]any {
	now := time.Now()
	return map[string]any{"iss": issuer, "aud": audience, "sub": "jane", "groups": []string{"dev"},
		"iat": jwt.NewNumericDate(now), "exp": jwt.NewNumericDate(now.Add(time.Hour))}
}

// decide is the webhook: jane may use ConfigMaps, and no Secrets.
func decide(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	if a := review.Spec.ResourceAttributes; a != nil && review.Spec.User == "oidc:jane" {
		switch a.Resource {
		case "configmaps":
			review.Status.Allowed = true
		case "secrets":
			review.Status.Denied, review.Status.Reason = true, "not for jane"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// client returns a client, whose requests are not held back.
func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config.Timeout, config.QPS = 30*time.Second, -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
