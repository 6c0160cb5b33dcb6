package statefulset

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller/history"
	"bonsai/pkg/controller/podcontrol"
)

func TestOrdinalOf(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for name, want := range map[string]int{"web-0": 0, "web-12": 12, "web-": -1, "web": -1, "web-01": -1, "web-x": -1,
		"web-1-2": -1, "other-1": -1, "web-+1": -1, "web-99999999999": -1} {
		n, ok := ordinalOf(set, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s is %d, want %d", name, n, want)
		}
	}
}

func TestPodFor(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "svc", VolumeClaimTemplates: []corev1.PersistentVolumeClaim{
				{ObjectMeta: metav1.ObjectMeta{Name: "www"}}},
		}}
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Hostname: "other", Volumes: []corev1.Volume{{Name: "www"}, {Name: "tmp"}},
		}}
	p := podFor(set, revision{"web-1a", template}, 3)
	want := map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": "web-3",
		"apps.kubernetes.io/pod-index": "3", "controller-revision-hash": "web-1a"}
	for k, v := range want {
		if p.Labels[k] != v {
			t.Errorf("label %s is %q, want %q", k, p.Labels[k], v)
		}
	}
	if p.Name != "web-3" || p.Spec.Hostname != "web-3" || p.Spec.Subdomain != "svc" || len(p.Labels) != len(want) {
		t.Errorf("the pod is %+v", p)
	}
	if v := p.Spec.Volumes; len(v) != 2 || v[0].PersistentVolumeClaim.ClaimName != "www-web-3" || v[1].Name != "tmp" {
		t.Errorf("its volumes are %+v", v)
	}
	if len(template.Labels) != 1 || template.Spec.Volumes[0].PersistentVolumeClaim != nil {
		t.Error("the template was changed")
	}
}

// TestRevisionName has a snapshot and the name that Kubernetes 1.36.3 gave it.
func TestRevisionName(t *testing.T) {
	t.Parallel()
	const data = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"one","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/x","name":"www"}]}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30,"volumes":[{"emptyDir":{},"name":"extra"}]}}}}`
	if got := hashOf([]byte(data), 0); got != "54cc75d7b7" {
		t.Errorf("the hash is %s", got)
	}
	if hashOf([]byte(data), 1) == "54cc75d7b7" {
		t.Error("the collision count does not change the hash")
	}
	r, err := templateOf(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Data: runtime.RawExtension{Raw: []byte(data)}})
	if err != nil || r.name != "web-1" {
		t.Fatal(r, err)
	}
	again, err := history.Snapshot(r.template)
	if err != nil || string(again) != data {
		t.Errorf("a snapshot of the restored template is\n%s\nwant\n%s (%v)", again, data, err)
	}
	for _, broken := range []string{`{`, `{}`, `{"spec":{"template":null}}`} {
		if _, err := templateOf(
			&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(broken)}}); err == nil {
			t.Errorf("%s was taken for a revision", broken)
		}
	}
}

// TestWords are messages that Kubernetes 1.36.3 wrote.
func TestWords(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for _, c := range []struct {
		verb podcontrol.Verb
		err  error
		want podcontrol.Words
	}{
		{podcontrol.VerbCreate, nil,
			podcontrol.Words{Reason: "SuccessfulCreate", Message: "Create Pod web-0 in StatefulSet web successful"}},
		{podcontrol.VerbDelete, nil,
			podcontrol.Words{Reason: "SuccessfulDelete", Message: "Delete Pod web-0 in StatefulSet web successful"}},
		{podcontrol.VerbCreate, errors.New("nope"),
			podcontrol.Words{Reason: "FailedCreate",
				Message: "Create Pod web-0 in StatefulSet web failed error: nope"}},
		{podcontrol.VerbCreate, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "web-0"),
			podcontrol.Words{}},
	} {
		if got := words(c.verb, set, "web-0", c.err); got != c.want {
			t.Errorf("%s, %v: %+v", c.verb, c.err, got)
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	s := stateOf(1, "0+p")
	s.set.Status.CurrentRevision = "c"
	var all []*appsv1.ControllerRevision
	for _, name := range []string{"old", "p", "a", "c", "older"} {
		all = append(all, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if got := s.idle(all); len(got) != 2 || got[0].Name != "old" || got[1].Name != "older" {
		t.Errorf("idle: %v", got)
	}
}
