package resourceclaim

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func byTemplate(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimTemplateName: ptr.To("t")}}
}

func template() *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"},
		Spec: resourcev1.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"},
				Annotations: map[string]string{"c": "d"}},
			Spec: resourcev1.ResourceClaimSpec{
				Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r"}}}},
		}}
}

// start returns a controller on a server that gives claims the name "generated".
func start(t *testing.T, live ...*corev1.Pod) (*Controller, *controllertest.Fake) {
	t.Helper()
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		switch {
		case call.Method == "GET":
			list := &corev1.PodList{}
			for _, p := range live {
				if call.Query.Get("fieldSelector") == "metadata.name="+p.Name {
					list.Items = append(list.Items, *p)
				}
			}
			return list, nil
		case call.Method == "POST":
			c := call.Object.(*resourcev1.ResourceClaim).DeepCopy()
			c.Name = "generated"
			return c, nil
		case call.Method == "PATCH":
			return &corev1.Pod{}, nil
		}
		return call.Object, nil
	}}
	ctl, err := New(fake.Deps(t, time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	return ctl, fake
}

const claims = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"

// TestGenerate: a pod gets one claim by its template, whose name goes into its status, also when that failed the first
// time and the cache shows the claim only later.
func TestGenerate(t *testing.T) {
	t.Parallel()
	ctl, fake := start(t)
	p := pod("p", byTemplate)
	controllertest.Put(t, ctl.pods, p)
	controllertest.Put(t, ctl.templates, template())
	fail := true
	answer := fake.Answer
	fake.Answer = func(call controllertest.Call) (runtime.Object, error) {
		if call.Method == "PATCH" && fail {
			fail = false
			return nil, apierrors.NewInternalError(errors.New("broken"))
		}
		return answer(call)
	}
	key := item{pod: true, Key: controller.KeyOf(p)}
	if _, err := ctl.Reconcile(t.Context(), key); err == nil {
		t.Error("a failed patch is no error")
	}
	if _, err := ctl.Reconcile(t.Context(), key); err != nil {
		t.Error(err)
	}
	patch := "PATCH /api/v1/namespaces/ns/pods/p/status"
	if got := fake.Names(); !slices.Equal(got, []string{"POST " + claims, patch, patch}) {
		t.Fatalf("%q", got)
	}
	made := fake.Calls()[0].Object.(*resourcev1.ResourceClaim)
	if made.GenerateName != "p-dev-" || made.Labels["a"] != "b" || made.Annotations["c"] != "d" ||
		made.Annotations["resource.kubernetes.io/pod-claim-name"] != "dev" ||
		!metav1.IsControlledBy(made, p) || len(made.Spec.Devices.Requests) != 1 {
		t.Errorf("%+v", made)
	}
	var status struct {
		Metadata struct{ UID string }
		Status   corev1.PodStatus
	}
	if err := json.Unmarshal(fake.Calls()[2].Body, &status); err != nil || status.Metadata.UID != "uid-p" ||
		len(status.Status.ResourceClaimStatuses) != 1 ||
		status.Status.ResourceClaimStatuses[0].Name != "dev" ||
		*status.Status.ResourceClaimStatuses[0].ResourceClaimName != "generated" {
		t.Errorf("%v: %s", err, fake.Calls()[2].Body)
	}

	// The claim is told of in the pod's status, and then deleted: another one is made.
	made = made.DeepCopy()
	made.Name = "generated"
	ctl.claimChanged(made)
	told := p.DeepCopy()
	told.Status.ResourceClaimStatuses = status.Status.ResourceClaimStatuses
	controllertest.Put(t, ctl.pods, told)
	if _, err := ctl.Reconcile(t.Context(), key); err != nil {
		t.Error(err)
	}
	if got := fake.Names(); len(got) != 4 || got[3] != "POST "+claims {
		t.Errorf("%q", got)
	}
}

// TestRefusals: what is missing, or another's, is told of in an event of upstream's words.
func TestRefusals(t *testing.T) {
	t.Parallel()
	foreign := claim(ownedBy(pod("other")))
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		event string
	}{
		"no template": {pod("p", byTemplate),
			`Warning FailedResourceClaimCreation PodResourceClaim dev: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found`},
		"another's claim": {pod("p", byTemplate, func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
				{Name: "dev", ResourceClaimName: ptr.To("c")}}
		}), "Warning FailedResourceClaimCreation PodResourceClaim dev: ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)"},
		"at its end": {pod("p", byTemplate, ended), ""},
		"is going":   {pod("p", byTemplate, leaving, onNode), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctl, fake := start(t)
			controllertest.Put(t, ctl.pods, c.pod)
			controllertest.Put(t, ctl.claims, foreign)
			_, err := ctl.Reconcile(t.Context(), item{pod: true, Key: controller.KeyOf(c.pod)})
			if (err != nil) != (c.event != "") {
				t.Error(err)
			}
			if got := fake.Names(); len(got) > 0 {
				t.Errorf("%q", got)
			}
			select {
			case e := <-ctl.Events.(*record.FakeRecorder).Events:
				if e != c.event {
					t.Errorf("event %q, want %q", e, c.event)
				}
			default:
				if c.event != "" {
					t.Error("no event")
				}
			}
		})
	}
}

// TestRelease: reservations of pods that have ended, or that the server does not know any more, are taken off; a pod
// that only the cache does not know keeps its own.
func TestRelease(t *testing.T) {
	t.Parallel()
	late := pod("late")
	for name, c := range map[string]struct {
		users []*corev1.Pod
		want  []string
	}{
		"ended": {[]*corev1.Pod{pod("ended")},
			[]string{"PUT " + claims + "/c/status", "PUT " + claims + "/c"}},
		"gone": {[]*corev1.Pod{pod("gone")},
			[]string{"GET /api/v1/namespaces/ns/pods", "PUT " + claims + "/c/status", "PUT " + claims + "/c"}},
		"late in the cache": {[]*corev1.Pod{late}, []string{"GET /api/v1/namespaces/ns/pods"}},
		"one of two": {[]*corev1.Pod{pod("ended"), late},
			[]string{"GET /api/v1/namespaces/ns/pods", "PUT " + claims + "/c/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctl, fake := start(t, late)
			controllertest.Put(t, ctl.pods, pod("ended", ended))
			controllertest.Put(t, ctl.claims, claim(held, allocated, reserved(c.users...)))
			if _, err := ctl.Reconcile(t.Context(), item{Key: controller.Key{Namespace: "ns", Name: "c"}}); err != nil {
				t.Error(err)
			}
			if got := fake.Names(); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for _, call := range fake.Calls() {
				if call.Method == "PUT" && !strings.HasSuffix(call.Path, "status") {
					if f := call.Object.(*resourcev1.ResourceClaim).Finalizers; !slices.Equal(f, []string{"other"}) {
						t.Errorf("finalizers %q", f)
					}
				}
			}
		})
	}
}

// TestForeignConsumers: consumers that are no pods are not judged.
func TestForeignConsumers(t *testing.T) {
	t.Parallel()
	ctl, fake := start(t)
	controllertest.Put(t, ctl.claims, claim(held, allocated, func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
			{APIGroup: "g", Resource: "things", Name: "x", UID: "u"}}
	}))
	if _, err := ctl.Reconcile(t.Context(), item{Key: controller.Key{Namespace: "ns", Name: "c"}}); err == nil ||
		len(fake.Names()) > 0 {
		t.Errorf("%v %q", err, fake.Names())
	}
}
