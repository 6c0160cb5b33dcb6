// Package login lets users of dex into a cluster of `bonsai up`, in which an authorization webhook says what they may
// and a KMS plug-in keeps Secrets: the users log in as in a browser, and call kubectl.
package login

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dexidp/dex/server"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The files of the cluster.
const (
	issuersFile = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [try], certificateAuthority: %q}
  claimMappings:
    username: {claim: email, prefix: "dex:"}
    groups: {claim: groups, prefix: "dex:"}
`
	authorizersFile = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- type: Webhook
  name: outside.example.org
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: request.user.startsWith('dex:')
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
	clusterFile = `apiVersion: bonsai.io/v1alpha1
kind: Cluster
componentFlags:
  kube-apiserver:
    authentication-config: %s/issuers.yaml
    authorization-config: %s/authorizers.yaml
    encryption-provider-config: %s/kms.yaml
`
)

// What the exec plug-in, which is this program again, learns from its environment.
const (
	pluginIssuer    = "DEX_TEST_ISSUER"
	pluginAuthority = "DEX_TEST_AUTHORITY"
	pluginRefresh   = "DEX_TEST_REFRESH"
)

func TestMain(m *testing.M) {
	if os.Getenv(pluginIssuer) == "" {
		os.Exit(m.Run())
	}
	if err := plugin(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "log in again:", err)
		os.Exit(1)
	}
}

// plugin is kubectl's exec plug-in: it exchanges the refresh token for an ID token, and keeps the next refresh token.
func plugin(ctx context.Context) error {
	file := os.Getenv(pluginRefresh)
	refresh, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	got, err := grant(ctx, clientOf(os.Getenv(pluginAuthority)), os.Getenv(pluginIssuer),
		url.Values{"grant_type": {"refresh_token"}, "refresh_token": {string(refresh)}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(got.Refresh), 0o600); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(clientauthv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: "client.authentication.k8s.io/v1", Kind: "ExecCredential"},
		Status:   &clientauthv1.ExecCredentialStatus{Token: got.ID}})
}

// decide is the authorization webhook: users of dex may use ConfigMaps and no Secrets, and authors may list pods.
func decide(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	if a := review.Spec.ResourceAttributes; a != nil {
		switch {
		case a.Resource == "configmaps":
			review.Status.Allowed = true
		case a.Resource == "secrets":
			review.Status.Denied, review.Status.Reason = true, "not for users of dex"
		case a.Resource == "pods" && strings.Contains(strings.Join(review.Spec.Groups, " "), "dex:authors"):
			review.Status.Allowed = true
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// cluster is the cluster of the test.
type cluster struct{ bin, dir string }

// run runs a program of ours, with input, and returns its output.
func (c *cluster) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "KUBECONFIG="+c.kubeconfig())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "config") }

// kubectl runs kubectl as a user.
func (c *cluster) kubectl(t *testing.T, user string, args ...string) (string, error) {
	t.Helper()
	return c.run(t.Context(), "kubectl", append([]string{"--user=" + user}, args...)...)
}

// eventually runs kubectl until it prints a text.
func (c *cluster) eventually(t *testing.T, text, user string, args ...string) {
	t.Helper()
	var out string
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			out, _ = c.kubectl(t, user, args...)
			return strings.Contains(out, text), nil
		}); err != nil {
		t.Fatalf("kubectl %q as %s does not print %q, but %s", args, user, text, out)
	}
}

// start starts the cluster.
func start(t *testing.T, p *provider, kmsEndpoint string) *cluster {
	t.Helper()
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "images", ".done")); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: a cluster needs root and `make build`")
	}
	c := &cluster{bin: bin, dir: t.TempDir()}
	webhook := httptest.NewTLSServer(http.HandlerFunc(decide))
	t.Cleanup(webhook.Close)
	authority, err := json.Marshal(pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"issuers.yaml":     fmt.Sprintf(issuersFile, p.url, p.authority),
		"authorizers.yaml": fmt.Sprintf(authorizersFile, filepath.Join(c.dir, "webhook.yaml")),
		"webhook.yaml":     fmt.Sprintf(webhookFile, webhook.URL, authority),
		"kms.yaml":         fmt.Sprintf(kmsFile, kmsEndpoint),
		"cluster.yaml":     fmt.Sprintf(clusterFile, c.dir, c.dir, c.dir),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(c.dir, "dex")
	t.Cleanup(func() {
		if out, err := c.run(context.WithoutCancel(t.Context()), "bonsai", "--data-dir", data, "down"); err != nil {
			t.Error(out, err)
		}
	})
	if out, err := c.run(t.Context(), "bonsai", "--data-dir", data, "--name", "dex", "up", "--egress=false",
		"--addons=coredns=false", "--config", filepath.Join(c.dir, "cluster.yaml")); err != nil {
		t.Fatal(out, err)
	}
	return c
}

// setUsers adds users to the kubeconfig.
func (c *cluster) setUsers(t *testing.T, users map[string]*clientcmdapi.AuthInfo) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, user := range users {
		config.AuthInfos[name] = user
	}
	if err := clientcmd.WriteToFile(*config, c.kubeconfig()); err != nil {
		t.Fatal(err)
	}
}

// TestDex: dex is away while the cluster starts, comes, gets other keys, goes and comes back. Meanwhile its users come
// in by tokens and by an exec plug-in that refreshes them, and the administrator always does.
func TestDex(t *testing.T) {
	p := newProvider(t)
	key, endpoint := startKMS(t)
	c := start(t, p, endpoint)
	config, err := clientcmd.LoadFromFile(c.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	admin := config.Contexts[config.CurrentContext].AuthInfo
	if out, err := c.kubectl(t, admin, "get", "nodes"); err != nil {
		t.Fatal("without dex, the administrator:", out, err)
	}

	p.start(t, true)
	jane, author := p.login(t, server.LocalConnector), p.login(t, "mock")
	refresh := filepath.Join(c.dir, "refresh")
	if err := os.WriteFile(refresh, []byte(jane.Refresh), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.setUsers(t, map[string]*clientcmdapi.AuthInfo{"jane": {Token: jane.ID}, "author": {Token: author.ID},
		"cut": {Token: jane.ID[:len(jane.ID)-8]},
		"plug-in": {Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: self,
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Env: []clientcmdapi.ExecEnvVar{
				{Name: pluginIssuer, Value: p.url}, {Name: pluginAuthority, Value: p.authority},
				{Name: pluginRefresh, Value: refresh}}}}})

	t.Run("who comes in", func(t *testing.T) {
		c.eventually(t, "dex:jane@example.org", "jane", "auth", "whoami")
		c.eventually(t, "dex:authors", "author", "auth", "whoami")
		for range 2 { // each with the refresh token that the one before it got
			if out, err := c.kubectl(t, "plug-in", "auth", "whoami"); err != nil ||
				!strings.Contains(out, "dex:jane@example.org") {
				t.Error("by the plug-in:", out, err)
			}
		}
		if out, err := c.kubectl(t, "cut", "auth", "whoami"); err == nil || !strings.Contains(out, "Unauthorized") &&
			!strings.Contains(out, "You must be logged in") {
			t.Error("with a cut token:", out)
		}
	})
	t.Run("what they may", func(t *testing.T) {
		for _, tt := range []struct{ user, resource, want string }{
			{"jane", "configmaps", "kube-root-ca.crt"}, {"plug-in", "configmaps", "kube-root-ca.crt"},
			{"jane", "secrets", "not for users of dex"}, {"jane", "pods", "forbidden"},
			{"author", "pods", "No resources found"}, {"author", "secrets", "not for users of dex"},
		} {
			if out, _ := c.kubectl(t, tt.user, "get", tt.resource); !strings.Contains(out, tt.want) {
				t.Errorf("%s gets %s: %s, want %q", tt.user, tt.resource, out, tt.want)
			}
		}
	})
	t.Run("what is kept secret", func(t *testing.T) {
		const text = "a text that nobody else writes"
		out, err := c.kubectl(t, admin, "create", "secret", "generic", "s", "--from-literal=text="+text)
		if err != nil {
			t.Fatal(out, err)
		}
		if key.encrypts.Load() == 0 {
			t.Error("the plug-in encrypted nothing")
		}
		for _, file := range filesBelow(t, filepath.Join(c.dir, "dex", "etcd")) {
			stored, err := os.ReadFile(file)
			if err == nil && bytes.Contains(stored, []byte(text)) {
				t.Errorf("the Secret's text is in %s", file)
			}
		}
	})
	t.Run("other keys", func(t *testing.T) {
		p.stop()
		p.start(t, true)
		c.setUsers(t, map[string]*clientcmdapi.AuthInfo{"again": {Token: p.login(t, server.LocalConnector).ID}})
		c.eventually(t, "dex:jane@example.org", "again", "auth", "whoami")
		c.eventually(t, "You must be logged in", "jane", "get", "configmaps")
		out, err := c.kubectl(t, "plug-in", "get", "configmaps")
		if err == nil || !strings.Contains(out, "log in again: no tokens: 400 Bad Request") {
			t.Error("by a plug-in whose refresh token is forgotten:", out)
		}
	})
	t.Run("away", func(t *testing.T) {
		p.stop()
		if out, err := c.kubectl(t, "again", "get", "configmaps"); err != nil {
			t.Error("by a token whose key is known:", out, err)
		}
		out, err := c.kubectl(t, "plug-in", "get", "configmaps")
		if err == nil || !strings.Contains(out, "connection refused") {
			t.Error("by a plug-in that reaches nobody:", out)
		}
		if out, err := c.kubectl(t, admin, "get", "secret", "s"); err != nil {
			t.Error("the administrator:", out, err)
		}
		p.start(t, false)
		c.setUsers(t, map[string]*clientcmdapi.AuthInfo{"back": {Token: p.login(t, server.LocalConnector).ID}})
		c.eventually(t, "dex:jane@example.org", "back", "auth", "whoami")
	})
}

func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no files in %s", dir)
	}
	return files
}
