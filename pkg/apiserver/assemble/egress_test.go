package assemble

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/request"
)

// refusing are proxies, one for each kind of connection, that refuse all and remember what they were asked for.
type refusing struct {
	mu    sync.Mutex
	asked map[string]bool // kind and address
}

// newRefusing serves the proxies at sockets, and returns a Selector that leads to them.
func newRefusing(t *testing.T) (*refusing, *selector.Selector) {
	t.Helper()
	p, dir := &refusing{asked: map[string]bool{}}, t.TempDir()
	text := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"
	for _, kind := range []string{selector.Cluster, selector.ControlPlane} {
		socket := filepath.Join(dir, kind)
		text += fmt.Sprintf("- {name: %s, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}}\n",
			kind, socket)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go p.serve(l, kind)
	}
	file := filepath.Join(dir, "egress.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ways, err := selector.Open(file, selector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p, ways
}

func (p *refusing) serve(l net.Listener, kind string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			p.mu.Lock()
			p.asked[kind+" "+r.Host] = true
			p.mu.Unlock()
			_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\n\r\n")
		}
		_ = conn.Close()
	}
}

// all returns what they were asked for, sorted.
func (p *refusing) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.asked))
}

// kubeconfig writes one of a webhook.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: w}}]\n" +
		"clusters: [{name: w, cluster: {server: '" + server + "'}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEgress: every connection goes through the proxy of its kind, as those of a real kube-apiserver v1.36.3 do.
func TestEgress(t *testing.T) {
	t.Parallel()
	proxies, ways := newRefusing(t)
	issuers := filepath.Join(t.TempDir(), "authentication.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
	for kind, url := range map[string]string{"cluster": "https://192.0.2.21", "controlplane": "https://192.0.2.22"} {
		text += "- issuer: {url: '" + url + "', audiences: [a], egressSelectorType: " + kind +
			"}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n"
	}
	if err := os.WriteFile(issuers, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := real(t, func(o *Options) {
		o.Egress, o.Authentication.ConfigFile = ways, issuers
		o.Authentication.Webhook = TokenWebhook{ConfigFile: kubeconfig(t, "https://192.0.2.23:8443"), Version: "v1"}
		o.Authorization.Modes = []string{"Webhook"}
		o.Authorization.Webhook = AuthorizationWebhook{ConfigFile: kubeconfig(t, "https://192.0.2.24:8443"),
			Version: "v1"}
	})
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(request.AsServer(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() { stop(); <-done }()
	create := func(group, resource, ns string, obj runtime.Object) error {
		_, err := cfg.Catalog.Store(schema.GroupResource{Group: group, Resource: resource}).Create(ctx, ns, obj,
			&metav1.CreateOptions{})
		return err
	}
	for _, err := range []error{
		create("", "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}),
		create("", "nodes", "", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.11"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}}}}),
		createService(create, "things", "192.0.2.12"),
		createService(create, "hook", "192.0.2.13"),
		create(apiregistrationv1.GroupName, "apiservices", "", &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1.things.example.com"},
			Spec: apiregistrationv1.APIServiceSpec{Group: "things.example.com", Version: "v1",
				InsecureSkipTLSVerify: true, GroupPriorityMinimum: 1, VersionPriority: 1,
				Service: &apiregistrationv1.ServiceReference{Namespace: "team", Name: "things",
					Port: ptr.To[int32](80)}}}),
		create(admissionv1.GroupName, "validatingwebhookconfigurations", "", hooksAt(
			admissionv1.WebhookClientConfig{URL: ptr.To("https://192.0.2.25/x")},
			admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: "team", Name: "hook", Port: ptr.To[int32](80)}})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	node := cfg.Parts.Behaviours[schema.GroupResource{Resource: "nodes"}].Subresources["proxy"].Connecter
	options, err := node.Options("healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cluster 192.0.2.11:10250", "cluster 192.0.2.12:80", "cluster 192.0.2.13:80",
		"cluster 192.0.2.21:443", "controlplane 192.0.2.22:443", "controlplane 192.0.2.23:8443",
		"controlplane 192.0.2.24:8443", "controlplane 192.0.2.25:443"}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for len(proxies.all()) < len(want) {
		// Webhooks are in force, and servers are looked at, soon after they are known.
		_ = create("", "configmaps", "team", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}})
		r := httptest.NewRequest(http.MethodGet, "/api/v1/nodes/n/proxy/healthz", nil).WithContext(ctx)
		_ = node.Connect(ctx, "", "n", options, httptest.NewRecorder(), r)
		r.Header.Set("Authorization", "Bearer unknown")
		_, _ = cfg.Parts.Authenticator.Authenticate(r)
		_, _, _ = cfg.Parts.Authorizer.Authorize(ctx, authz.Attributes{User: &request.User{Name: "bob"}})
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Fatalf("the proxies were asked for %v, want %v", proxies.all(), want)
		}
	}
	if got := proxies.all(); !slices.Equal(got, want) {
		t.Errorf("the proxies were asked for %v, want %v", got, want)
	}
}

// createService makes a Service of the namespace team, whose endpoint is addr.
func createService(create func(group, resource, ns string, obj runtime.Object) error, name, addr string) error {
	meta := metav1.ObjectMeta{Name: name, Namespace: "team",
		Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	if err := create("", "services", "team", &corev1.Service{ObjectMeta: meta,
		Spec: corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Port: 80}}}}); err != nil {
		return err
	}
	return create(discoveryv1.GroupName, "endpointslices", "team",
		&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{addr}}},
			Ports:     []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](80)}}})
}

// hooksAt are webhooks that are asked about ConfigMaps, and that hinder nobody.
func hooksAt(places ...admissionv1.WebhookClientConfig) *admissionv1.ValidatingWebhookConfiguration {
	all := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}}
	for i, at := range places {
		all.Webhooks = append(all.Webhooks, admissionv1.ValidatingWebhook{
			Name: fmt.Sprintf("hook%d.example.com", i), ClientConfig: at, AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionv1.Ignore),
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"configmaps"}}}}})
	}
	return all
}
