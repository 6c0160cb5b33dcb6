package rollout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "d", Generation: 2}
	deploy := func(s appsv1.DeploymentStatus) workload {
		return &deployment{appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
			Status: s}}
	}
	daemon := func(s appsv1.DaemonSetStatus) workload {
		u := appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
		return &daemonSet{appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{UpdateStrategy: u}, Status: s}}
	}
	stateful := func(partition *int32, s appsv1.StatefulSetStatus) workload {
		u := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: partition}}
		return &statefulSet{appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: u}, Status: s}}
	}
	for _, c := range []struct {
		w    workload
		want string
		done bool
	}{
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 1}),
			"Waiting for deployment spec update to be observed...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1}),
			"Waiting for deployment \"d\" rollout to finish: 1 out of 3 new replicas have been updated...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 4}),
			"Waiting for deployment \"d\" rollout to finish: 1 old replicas are pending termination...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 2}),
			"Waiting for deployment \"d\" rollout to finish: 2 of 3 updated replicas are available...\n", false},
		{deploy(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}),
			"deployment \"d\" successfully rolled out\n", true},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 1}),
			"Waiting for daemon set spec update to be observed...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1}),
			"Waiting for daemon set \"d\" rollout to finish: 1 out of 2 new pods have been updated...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2,
			NumberAvailable: 1}), "Waiting for daemon set \"d\" rollout to finish: 1 of 2 updated pods are available...\n", false},
		{daemon(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2,
			NumberAvailable: 2}), "daemon set \"d\" successfully rolled out\n", true},
		{stateful(nil, appsv1.StatefulSetStatus{}), "Waiting for statefulset spec update to be observed...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 1}),
			"Waiting for 2 pods to be ready...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1,
			UpdateRevision: "d-2", CurrentRevision: "d-1"}),
			"waiting for statefulset rolling update to complete 1 pods at revision d-2...\n", false},
		{stateful(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, CurrentReplicas: 3,
			UpdateRevision: "d-2", CurrentRevision: "d-2"}),
			"statefulset rolling update complete 3 pods at revision d-2...\n", true},
		{stateful(new(int32(1)), appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1}),
			"Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...\n", false},
		{stateful(new(int32(1)), appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 2}),
			"partitioned roll out complete: 2 new pods have been updated...\n", true},
	} {
		if got, done, err := c.w.progress(0); err != nil || got != c.want || done != c.done {
			t.Errorf("got %q, %t (%v), want %q, %t", got, done, err, c.want, c.done)
		}
	}
}

// TestStatusOutlivesWatches: a server that ends its watches, as each does after a while, does not end the wait for a
// rollout; a deletion in between does, and a timeout.
func TestStatusOutlivesWatches(t *testing.T) {
	t.Parallel()
	deploy := func(version, updated int) string {
		return fmt.Sprintf(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","namespace":"n","resourceVersion":"%d","generation":1},"spec":{"replicas":2},`+
			`"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":%d,"availableReplicas":2}}`, version,
			updated)
	}
	const waiting = "Waiting for deployment \"d\" rollout to finish: 0 out of 2 new replicas have been updated...\n"
	for name, c := range map[string]struct {
		then    string // what is there after the first watch
		timeout time.Duration
		want    string
		err     string
	}{
		"done":    {deploy(2, 2), 0, waiting + "deployment \"d\" successfully rolled out\n", ""},
		"deleted": {"", 0, waiting, "object has been deleted"},
		"late":    {deploy(1, 0), 300 * time.Millisecond, waiting, "timed out waiting for the condition"},
	} {
		watched := false
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("watch") == "true":
				watched = true // and ends at once
			case !watched:
				fmt.Fprint(w, deploy(1, 0))
			case c.then == "":
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			default:
				fmt.Fprint(w, c.then)
			}
		}))
		defer s.Close()
		client, err := resource.NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		m := &meta.RESTMapping{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"),
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Scope: meta.RESTScopeNamespace}
		object, err := client.Get(t.Context(), m, "n", "d")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		o := &options{IOStreams: cli.IOStreams{Out: &out}, client: client, watch: true, timeout: c.timeout}
		err = status(t.Context(), o, &resource.Info{Mapping: m, Namespace: "n", Name: "d", Object: object})
		if out.String() != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}
