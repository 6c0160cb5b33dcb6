package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: dev
clusters:
- {name: dev, cluster: {server: "https://dev:6443", certificate-authority-data: Y2E=}}
- {name: prod, cluster: {server: "https://prod:6443", insecure-skip-tls-verify: true}}
users:
- {name: ann, user: {token: ann-token}}
- {name: bob, user: {username: bob, password: secret}}
contexts:
- {name: dev, context: {cluster: dev, user: ann, namespace: team}}
- {name: prod, context: {cluster: prod, user: bob}}
`

// parsed is a factory with the flags of args.
func parsed(t *testing.T, errOut *bytes.Buffer, args ...string) *Factory {
	t.Helper()
	f := NewFactory("v1.36.3", IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: errOut})
	set := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	f.AddFlags(set)
	if err := set.Parse(append([]string{"--cache-dir", t.TempDir()}, args...)); err != nil {
		t.Fatal(err)
	}
	return f
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFactory: flags go before the context's cluster, user and namespace.
func TestFactory(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, kubeconfig)
	type want struct {
		host, token, user, as, namespace string
		insecure, named                  bool
	}
	dev := want{host: "https://dev:6443", token: "ann-token", namespace: "team"}
	with := func(change func(*want)) want { w := dev; change(&w); return w }
	for _, c := range []struct {
		args string
		want want
	}{
		{"", dev},
		{"-n other", with(func(w *want) { w.namespace, w.named = "other", true })},
		{"--context prod", want{host: "https://prod:6443", user: "bob", insecure: true, namespace: "default"}},
		{"--cluster prod", with(func(w *want) { w.host, w.insecure = "https://prod:6443", true })},
		{"--user bob", with(func(w *want) { w.token, w.user = "", "bob" })},
		{"--context prod --user ann -n x",
			want{host: "https://prod:6443", token: "ann-token", insecure: true, namespace: "x", named: true}},
		{"-s https://other:1", with(func(w *want) { w.host = "https://other:1" })},
		{"--token flag-token", with(func(w *want) { w.token = "flag-token" })},
		{"--as eve --as-group g", with(func(w *want) { w.as = "eve" })},
	} {
		f := parsed(t, &bytes.Buffer{}, append([]string{"--kubeconfig", config}, strings.Fields(c.args)...)...)
		cfg, err := f.RESTConfig()
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		ns, named, err := f.Namespace()
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		got := want{cfg.Host, cfg.BearerToken, cfg.Username, cfg.Impersonate.UserName, ns, cfg.Insecure, named}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.args, got, c.want)
		}
	}
}

// TestFactoryErrors: the errors as the user reads them.
func TestFactoryErrors(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, kubeconfig)
	missing := filepath.Join(t.TempDir(), "none")
	broken := writeConfig(t, "clusters: {")
	for args, want := range map[string]string{
		"--kubeconfig " + missing: "error: stat " + missing + ": no such file or directory\n",
		"--kubeconfig " + config +
			" --context nope": "Error in configuration: context was not found for specified context: nope\n",
		"--kubeconfig " + config + " --cluster nope":    "error: no server found for cluster \"nope\"\n",
		"--kubeconfig " + config + " --user nope":       "error: auth info \"nope\" does not exist\n",
		"--kubeconfig " + config + " --as-user-extra x": "error: invalid --as-user-extra \"x\", must be KEY=VALUE\n",
		"--kubeconfig " + broken:                        "error: error loading config file \"" + broken + "\"",
	} {
		var said bytes.Buffer
		f := parsed(t, &bytes.Buffer{}, strings.Fields(args)...)
		_, _, err := f.Namespace() // verbs ask in this order
		if err == nil {
			_, err = f.RESTConfig()
		}
		if code := Report(&said, err); code != 1 || !strings.HasPrefix(said.String(), want) {
			t.Errorf("%s: %d %q, want %q", args, code, said.String(), want)
		}
	}
}

// TestKubeconfigOrder: --kubeconfig goes before $KUBECONFIG, whose files are merged, the first one first.
func TestKubeconfigOrder(t *testing.T) {
	one := writeConfig(t, strings.ReplaceAll(kubeconfig, "https://dev:", "https://one:"))
	two := writeConfig(t, strings.ReplaceAll(kubeconfig, "prod", "two"))
	t.Setenv("KUBECONFIG", one+string(os.PathListSeparator)+two)
	for args, want := range map[string]string{"": "https://one:6443", "--context two": "https://two:6443",
		"--kubeconfig " + two: "https://dev:6443"} {
		cfg, err := parsed(t, &bytes.Buffer{}, strings.Fields(args)...).RESTConfig()
		if err != nil || cfg.Host != want {
			t.Errorf("%q: %v, %v, want %s", args, cfg, err, want)
		}
	}
}

// TestRequests: what every request carries, and that warnings of the server are shown once.
func TestRequests(t *testing.T) {
	t.Parallel()
	var seen []http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		w.Header().Add("Warning", `299 - "old"`)
		w.Write([]byte(`{"gitVersion":"v1.30.0"}`))
	}))
	t.Cleanup(s.Close)
	var said bytes.Buffer
	config := writeConfig(t, kubeconfig)
	f := parsed(t, &said, "--kubeconfig", config, "--context", "prod", "--user", "ann", "-s", s.URL, "--as", "eve",
		"--warnings-as-errors")
	if err := f.Warned(); err != nil {
		t.Errorf("before any request: %v", err)
	}
	cfg, err := f.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.ServerVersion(); err != nil {
			t.Fatal(err)
		}
	}
	if said.String() != "Warning: old\n" {
		t.Errorf("said %q", said.String())
	}
	if err := f.Warned(); err == nil || err.Error() != "1 warning received" {
		t.Errorf("--warnings-as-errors: %v", err)
	}
	get, post := seen[0], seen[1]
	if !strings.HasPrefix(get.Get("User-Agent"), "kubectl/v1.36.3 (") || get.Get("Impersonate-User") != "eve" {
		t.Errorf("the headers are %v", get)
	}
	if get.Get("Traceparent") != "" || post.Get("Traceparent") == "" {
		t.Errorf("a trace context is for writes: GET %q, POST %q", get.Get("Traceparent"), post.Get("Traceparent"))
	}
	if _, err := parsed(t, &said, "--kubeconfig", config, "-s", s.URL, "--match-server-version", "--context",
		"prod").RESTConfig(); err == nil ||
		!strings.Contains(err.Error(), "server version (v1.30.0) differs from client version (v1.36.3)") {
		t.Errorf("another version: %v", err)
	}
}

// TestInCluster: without a kubeconfig there is nothing but the defaults, which give way to the configuration of a pod;
// flags and files say more than they.
func TestInCluster(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"": true, "--server=https://other:1": false} {
		f := parsed(t, &bytes.Buffer{},
			append([]string{"--kubeconfig=" + writeConfig(t, "{}")}, strings.Fields(args)...)...)
		o, err := f.overrides()
		if err != nil {
			t.Fatal(err)
		}
		rules := f.LoadingRules()
		config, err := clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), o).ClientConfig()
		if err != nil || rules.IsDefaultConfig(config) != want {
			t.Errorf("with %q the defaults alone are there: %v, want %v (%v)", args, !want, want, err)
		}
	}
}

// TestPluginWithoutStdin: a credential plug-in cannot read standard input that the command itself reads.
func TestPluginWithoutStdin(t *testing.T) {
	t.Parallel()
	config := writeConfig(t,
		strings.Replace(kubeconfig, "{token: ann-token}",
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}}", 1))
	for _, taken := range []bool{false, true} {
		f := parsed(t, &bytes.Buffer{}, "--kubeconfig", config)
		f.StdinTaken = taken
		c, err := f.RESTConfig()
		if err != nil || c.ExecProvider == nil || c.ExecProvider.StdinUnavailable != taken {
			t.Errorf("taken %v: %+v, %v", taken, c, err)
		}
	}
}
