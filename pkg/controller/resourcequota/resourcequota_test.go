package resourcequota

import (
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/quota"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const statusPath = "PUT /api/v1/namespaces/ns/resourcequotas/q/status"

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// stage is a controller that has q in its cache, on a fake API server that serves nothing by discovery.
func stage(t *testing.T, q *corev1.ResourceQuota) (*Controller, *controllertest.Fake) {
	t.Helper()
	f := &controllertest.Fake{Answer: func(c controllertest.Call) (runtime.Object, error) {
		if c.Path == "/api" || c.Path == "/apis" {
			return &apidiscoveryv2.APIGroupDiscoveryList{
				TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}, nil
		}
		return c.Object, nil
	}}
	c, err := New(f.Deps(t, time.Unix(1000, 0)), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	q.Namespace, q.Name = "ns", "q"
	controllertest.Put(t, c.quotas, q)
	return c, f
}

// reconcile returns the status that was written, nil if none was.
func reconcile(t *testing.T, c *Controller, f *controllertest.Fake) (controller.Result, *corev1.ResourceQuotaStatus) {
	t.Helper()
	before := len(f.Calls())
	res, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "q"})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range f.Calls()[before:] {
		if call.Name() == statusPath {
			return res, &call.Object.(*corev1.ResourceQuota).Status
		}
	}
	return res, nil
}

func pod(name, cpu string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Status: corev1.PodStatus{Phase: phase},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu)}}}}}
}

func TestCount(t *testing.T) {
	t.Parallel()
	hard := list("pods", "9", "count/pods", "9", "requests.cpu", "9", "services", "9", "persistentvolumeclaims", "9",
		"count/x.example.com", "9", "requests.storage", "9")
	c, f := stage(t, &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	other := pod("p", "1", corev1.PodRunning)
	other.Namespace = "other"
	controllertest.Put(t, c.pods, pod("a", "1", corev1.PodRunning), pod("b", "2", corev1.PodPending),
		pod("c", "4", corev1.PodSucceeded), other)
	controllertest.Put(t, c.services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	claim.Spec.Resources.Requests = list("storage", "5")
	controllertest.Put(t, c.claims, claim)
	res, status := reconcile(t, c, f)
	if status == nil || res.RequeueAfter != time.Hour {
		t.Fatalf("got %v, %v", res, status)
	}
	if got := quota.Text(status.Used); got !=
		"count/pods=3,persistentvolumeclaims=1,pods=2,requests.cpu=3,requests.storage=5,services=1" ||
		!quota.Equal(status.Hard, hard) {
		t.Errorf("used %s, hard %s", got, quota.Text(status.Hard))
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	c, f := stage(t, &corev1.ResourceQuota{
		Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "9", "count/secrets", "9"),
			Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}})
	controllertest.Put(t, c.pods, pod("a", "0", corev1.PodRunning), pod("b", "2", corev1.PodPending))
	if _, status := reconcile(t, c, f); status == nil || quota.Text(status.Used) != "count/secrets=0,pods=1" {
		t.Errorf("got %v", status)
	}
}

// What a count gives back waits for the last charge to be among the objects; what it finds to be more does not.
func TestSettling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		used string
		old  time.Duration // of the last charge
		wait time.Duration
	}{
		"right":                {"1", 0, 0},
		"more than charged":    {"0", 0, 0},
		"less, just charged":   {"2", 100 * time.Millisecond, settling - 100*time.Millisecond},
		"less, charged before": {"2", settling, 0},
	} {
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "2")},
			Status: corev1.ResourceQuotaStatus{Hard: list("pods", "2"), Used: list("pods", c.used)}}
		ctl, f := stage(t, q)
		controllertest.Put(t, ctl.pods, pod("a", "1", corev1.PodRunning))
		ctl.written[controller.KeyOf(q)] = ctl.Now().Add(-c.old)
		res, status := reconcile(t, ctl, f)
		if writes := c.used != "1" && c.wait == 0; (status != nil) != writes {
			t.Errorf("%s: wrote %v", name, status)
		}
		if want := c.wait; want > 0 && res.RequeueAfter != want || want == 0 && res.RequeueAfter != time.Hour {
			t.Errorf("%s: again after %s", name, res.RequeueAfter)
		}
	}
}

// A resource whose watch has just begun is waited for; one that does not answer keeps the count it had.
func TestUnknownNumbers(t *testing.T) {
	t.Parallel()
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("secrets", "9", "count/configmaps", "9")},
		Status: corev1.ResourceQuotaStatus{Used: list("secrets", "7")}}
	c, f := stage(t, q)
	put := func(name string, age time.Duration) {
		m := controller.NewMonitor(schema.GroupVersionResource{Version: "v1", Resource: name},
			func(metav1.Object, bool) {}, func(string, types.UID) {})
		c.counters.byName[corev1.Resource(name)] = &counter{Monitor: m, started: c.Now().Add(-age)}
	}
	put("secrets", time.Second)
	put("configmaps", time.Second)
	if res, status := reconcile(t, c, f); status != nil || !res.Backoff {
		t.Errorf("at first: got %v, %v", res, status)
	}
	put("secrets", patience)
	put("configmaps", patience)
	if _, status := reconcile(t, c, f); status == nil || quota.Text(status.Used) != "secrets=7" {
		t.Errorf("in the end: got %v", status)
	}
}

func TestFailedWrites(t *testing.T) {
	t.Parallel()
	for reason, want := range map[metav1.StatusReason]bool{metav1.StatusReasonConflict: true,
		metav1.StatusReasonNotFound: false} {
		c, f := stage(t, &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "2")}})
		f.Answer = func(controllertest.Call) (runtime.Object, error) {
			return nil, &apierrors.StatusError{
				ErrStatus: metav1.Status{Reason: reason, Code: map[bool]int32{true: 409, false: 404}[want]}}
		}
		_, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "q"})
		if (err != nil) != want || err != nil && !strings.HasPrefix(err.Error(), "writing the status of quota ns/q: ") {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}
