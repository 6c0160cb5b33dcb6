package assemble

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/egress/egresstest"
)

// TestProxyToOwnAddress: services/proxy leads to an address of the server's machine only if that is a node, by its
// name.
func TestProxyToOwnAddress(t *testing.T) {
	t.Parallel()
	own := egresstest.OwnAddress(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(own, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	behind := &httptest.Server{Listener: listener,
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("reached"))
		})}}
	behind.Start()
	defer behind.Close()
	at := netip.MustParseAddrPort(listener.Addr().String())

	cfg := real(t)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() { stop(); <-done }()
	create := func(group, resource, ns string, obj runtime.Object) {
		t.Helper()
		if _, err := cfg.Catalog.Store(schema.GroupResource{Group: group, Resource: resource}).Create(ctx, ns, obj,
			&metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Name: "web", Namespace: "team",
		Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}
	create("", "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	create("", "services", "team",
		&corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Port: 80}}}})
	create("discovery.k8s.io", "endpointslices", "team",
		&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{own.String()}}},
			Ports:     []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To(int32(at.Port()))}}})

	proxy := cfg.Parts.Behaviours[schema.GroupResource{Resource: "services"}].Subresources["proxy"].Connecter
	ask := func() (string, error) {
		opts, err := proxy.Options("", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/team/services/web/proxy/", nil).WithContext(ctx)
		err = proxy.Connect(ctx, "team", "web", opts, answer, r)
		return answer.Body.String(), err
	}
	if got, err := ask(); err == nil || !strings.Contains(err.Error(), "address not allowed") {
		t.Errorf("no node: %q, %v", got, err)
	}
	node := func(name string) {
		create("", "nodes", "", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: own.String()}}}})
	}
	node("other")
	if got, err := ask(); err == nil || !strings.Contains(err.Error(), "address not allowed") {
		t.Errorf("a node that says that it has the address: %q, %v", got, err)
	}
	node("vm")
	if got, err := ask(); err != nil || got != "reached" {
		t.Errorf("the machine is a node: %q, %v", got, err)
	}
}
