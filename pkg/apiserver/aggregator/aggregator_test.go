package aggregator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/pkg/apiserver/request"
)

func apiService(name, managed string, priority int32) *v1.APIService {
	s := &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.APIServiceSpec{Group: name, VersionPriority: priority}}
	if managed != "" {
		s.Labels = map[string]string{automanaged: managed}
	}
	return s
}

// What a kube-apiserver v1.36.3 was seen to do with APIServices that it registered and that somebody changed.
func TestChanges(t *testing.T) {
	t.Parallel()
	wanted := map[string]registration{
		"built-in": {v1.APIServiceSpec{Group: "built-in", VersionPriority: 15}, automanagedOnStart},
		"custom":   {v1.APIServiceSpec{Group: "custom", VersionPriority: 100}, automanagedAlways},
	}
	all := func(list ...*v1.APIService) map[string]*v1.APIService {
		out := map[string]*v1.APIService{}
		for _, s := range list {
			out[s.Name] = s
		}
		return out
	}
	right := []*v1.APIService{apiService("built-in", automanagedOnStart, 15),
		apiService("custom", automanagedAlways, 100)}
	for _, x := range []struct {
		name               string
		have               map[string]*v1.APIService
		settled            bool
		complete, starting bool
		want               []change
	}{
		{"nothing there", nil, false, true, true, []change{{"built-in", create}, {"custom", create}}},
		{"all there", all(right...), false, true, true, nil},
		{"deleted while it runs", nil, true, true, false, []change{{"custom", create}}},
		{"changed before the start",
			all(apiService("built-in", automanagedOnStart, 1), apiService("custom", automanagedAlways, 1)), false, true,
			true,
			[]change{{"built-in", update}, {"custom", update}}},
		{"changed while it runs",
			all(apiService("built-in", automanagedOnStart, 1), apiService("custom", automanagedAlways, 1)), true, true,
			false,
			[]change{{"custom", update}}},
		{"taken over", all(apiService("built-in", "", 1), apiService("custom", "", 1)), false, true, true, nil},
		{"not served any more", all(
			append(slices.Clone(right), apiService("old", automanagedOnStart, 1),
				apiService("gone", automanagedAlways, 1), apiService("own", "", 1))...), false, true, true,
			[]change{{"gone", remove}, {"old", remove}}},
		{"not served yet", all(append(slices.Clone(right), apiService("gone", automanagedAlways, 1))...), false, false,
			true, nil},
		{"marked by somebody", all(append(slices.Clone(right), apiService("old", automanagedOnStart, 1))...), true,
			true, false, nil},
	} {
		settled := map[string]bool{"built-in": x.settled, "custom": x.settled}
		if got := changes(wanted, x.have, settled, x.complete, x.starting); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// The words are those of a kube-apiserver v1.36.3.
func TestReachable(t *testing.T) {
	t.Parallel()
	to := &v1.ServiceReference{Namespace: "ns1", Name: "ext"}
	service := func(port int32) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: "https", Port: port}}}}
	}
	slice := func(portName string, ready *bool, addresses ...string) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{
			{Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: new(int32(8443))}},
				Endpoints: []discoveryv1.Endpoint{
					{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}}}}
	}
	missing := `MissingEndpoints: endpointslices for service/ext in "ns1" have no addresses with port name "https"`
	for _, x := range []struct {
		name string
		svc  *corev1.Service
		list []*discoveryv1.EndpointSlice
		want string
	}{
		{"other port", service(8443), nil, `ServicePortError: service/ext in "ns1" is not listening on port 443`},
		{"no slices", service(443), nil, `EndpointsNotFound: cannot find endpointslices for service/ext in "ns1"`},
		{"not ready", service(443), slice("https", new(false), "192.0.2.1"), missing},
		{"other port name", service(443), slice("http", nil, "192.0.2.1"), missing},
		{"no address", service(443), slice("https", nil), missing},
		{"ready", service(443), slice("https", new(true), "192.0.2.1"), ""},
		{"perhaps ready", service(443), slice("https", nil, "192.0.2.1"), ""},
		{"by name", &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}, nil, ""},
	} {
		got := ""
		if c, ok := reachable(to, x.svc, x.list); !ok {
			got = c.Reason + ": " + c.Message
		}
		if got != x.want {
			t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
		}
	}
}

// store holds one Service.
type store struct{ svc *corev1.Service }

func (s store) GetCached(context.Context, string, string) (runtime.Object, error) { return s.svc, nil }

func (store) List(context.Context, string, string) ([]runtime.Object, error) {
	return []runtime.Object{
		&discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}}}, nil
}

// TestAddresses: a server is where its Service leads, whether requests go to endpoints or to the Service's address.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		routing bool
		spec    corev1.ServiceSpec
		want    string
	}{
		{"endpoints", true, corev1.ServiceSpec{ClusterIP: "192.0.2.9",
			Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, "[192.0.2.1:8443]"},
		{"address", false, corev1.ServiceSpec{ClusterIP: "192.0.2.9",
			Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, "[192.0.2.9:443]"},
		{"headless", false, corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
			Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, "[192.0.2.1:8443]"},
		{"a name, by endpoints", true,
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "api.example.com"},
			"[api.example.com:443]"},
		{"a name, by address", false,
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "api.example.com"},
			"[api.example.com:443]"},
	} {
		from := store{&corev1.Service{Spec: x.spec}}
		got, err := Cluster{Services: from, Slices: from, Routing: x.routing}.addresses(t.Context(),
			&v1.ServiceReference{Namespace: "ns1", Name: "ext"})
		if err != nil || fmt.Sprint(got) != x.want {
			t.Errorf("%s: %v, %v; want %s", x.name, got, err, x.want)
		}
	}
}

func TestResourcesOf(t *testing.T) {
	t.Parallel()
	got := resourcesOf([]metav1.APIResource{
		{Name: "widgets/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: metav1.Verbs{"get"}},
		{Name: "widgets", SingularName: "widget", Namespaced: true, Kind: "Widget", Verbs: metav1.Verbs{"list"},
			ShortNames: []string{"w"}, Categories: []string{"all"}},
		{Name: "alone/sub", Kind: "Alone", Verbs: metav1.Verbs{"create"}},
	}, "g", "v2")
	text := ""
	for _, r := range got {
		text += fmt.Sprintf("%s %s %s %v %v %v %v\n", r.Resource, r.SingularResource, r.Scope, r.ResponseKind, r.Verbs,
			r.ShortNames, r.Categories)
		for _, s := range r.Subresources {
			text += fmt.Sprintf("  %s %v %v\n", s.Subresource, s.ResponseKind, s.Verbs)
		}
	}
	want := `alone  Cluster /, Kind= [] [] []
  sub g/v2, Kind=Alone [create]
widgets widget Namespaced g/v2, Kind=Widget [list] [w] [all]
  scale autoscaling/v1, Kind=Scale [get]
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// A server behind this one believes what this one says of the caller, and nothing that the caller says.
func TestIdentify(t *testing.T) {
	t.Parallel()
	a := New(Config{IdentityHeaders: []string{"X-Who"}, IdentityPrefixes: []string{"X-More-"}})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, name := range []string{"X-Remote-User", "x-remote-user", "X_Remote_User", "X-Remote_Group",
		"X-REMOTE-EXTRA-SCOPES", "X-Remote-Uid", "X-Remote-Anything", "x_who", "X-More-Scopes",
		"x-more_a", "Authorization", "Impersonate-User", "Impersonate_Group"} {
		r.Header[name] = []string{"evil"} // also what Go's server would have spelled anew
	}
	r.Header.Set("X-Other", "kept")
	a.identify(r, &request.User{Name: "jane", UID: "7", Groups: []string{"a", "b"},
		Extra: map[string][]string{"example.com/scope": {"x", "y"}}})
	want := http.Header{"X-Remote-User": {"jane"}, "X-Remote-Uid": {"7"}, "X-Remote-Group": {"a", "b"},
		"X-Remote-Extra-Example.com%2fscope": {"x", "y"}, "X-Other": {"kept"}}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Error(diff)
	}
}
