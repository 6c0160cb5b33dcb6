package kubelet

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/client"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/sysctl"
)

// TestUnsupported: a pod of another operating system and one with a forbidden kernel parameter are refused on sight.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	allowed, err := sysctl.New([]string{"net.core.somaxconn"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec            corev1.PodSpec
		reason, message string
	}{
		"linux":          {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, "", ""},
		"windows":        {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"},
		"allowed sysctl": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn"}}}}, "", ""},
		"unsafe sysctl": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax"}}}},
			"SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`},
	} {
		got := unsupported(&corev1.Pod{Spec: c.spec}, allowed)
		if got == nil {
			got = &admission.Rejection{}
		}
		if got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A pod that the runtime had before the kubelet began keeps its place; a place is free before the API hears of the pod's end.
func TestPlacesAcrossARestart(t *testing.T) {
	t.Parallel()
	k := plain()
	remote, err := client.New(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if k.objects, err = objects.New(objects.Config{Client: remote, Log: k.log, Changed: func([]types.UID) {}}); err != nil {
		t.Fatal(err)
	}
	k.earlier = map[types.UID]*corev1.Pod{}
	k.listedOnce, k.api, k.node, k.workers = make(chan struct{}), &config.API{}, &node.Node{}, podworker.New(k, func(*corev1.Pod) {}, k.log)
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "ns"}}
	}
	k.listed([]*runtime.PodStatus{{UID: "ran", Name: "ran", Sandboxes: []runtime.Sandbox{{ID: "s"}}},
		{UID: "edited", Name: "web-n", Annotations: map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}}})
	if len(k.earlier) != 1 || k.earlier["edited"] == nil {
		t.Errorf("static pods of the life before: %v", k.earlier)
	}
	fileSource{k}.Remove(k.earlier["edited"])
	if state, known := k.workers.State("edited"); !known || state != podworker.Terminating {
		t.Errorf("a static pod of the life before whose manifest is gone: %v, %v", state, known)
	}
	source := apiSource{k, t.Context()}
	source.Update(pod("first"))
	source.Update(pod("ran"))
	source.Update(pod("second"))
	k.admission.Open()
	admitted := func(uid types.UID) bool {
		verdict, _ := k.admission.Admit(pod(uid))
		return verdict == admission.Admitted
	}
	if admitted("first") || !admitted("ran") { // the node has room for one
		t.Error("a new pod took the place of one that ran before")
	}
	ran := k.state("ran")
	k.report(k.facts(k.withStatus(pod("ran")), ran, &runtime.PodStatus{}, true), ran, true)
	if !admitted("second") {
		t.Error("the place of the pod that has ended is not free")
	}
}

// A pod that the node refuses shows why in kubectl's column STATUS, which the state of a container would hide.
func TestARefusedPodTellsOfNoContainers(t *testing.T) {
	t.Parallel()
	k := plain()
	k.node = &node.Node{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	st := k.state("u")
	st.rejected = &admission.Rejection{Reason: "OutOfpods"}
	k.report(k.facts(k.withStatus(pod), st, &runtime.PodStatus{}, false), st, true)
	if s, _ := k.status.Get("u"); s.Phase != corev1.PodFailed || s.Reason != "OutOfpods" || len(s.ContainerStatuses) != 0 {
		t.Errorf("refused: %+v", s)
	}
	taken := k.state("taken")
	taken.rejected, taken.admitted = &admission.Rejection{Reason: "Evicted"}, true
	k.report(k.facts(k.withStatus(pod), taken, &runtime.PodStatus{}, false), taken, true)
	if s, _ := k.status.Get("u"); len(s.ContainerStatuses) != 1 {
		t.Errorf("taken: %+v", s)
	}
}

// A pod that loses its place to a critical one fails with upstream's reason, and the critical one runs once it has ended.
func TestPreempted(t *testing.T) {
	t.Parallel()
	k := plain()
	remote, err := client.New(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	k.events, k.node = newRecorder(remote, "n"), &node.Node{}
	low := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "low"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "static", Annotations: map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}}}
	k.admission.Open()
	verdict := func(pod *corev1.Pod) admission.Verdict { v, _ := k.admission.Admit(pod); return v }
	if v := verdict(low); v != admission.Admitted { // the only place
		t.Fatal(v)
	}
	if v := verdict(static); v != admission.Waiting {
		t.Fatal(v)
	}
	st := k.state("low")
	if v := k.admit(low, st); v != admission.Preempted {
		t.Fatal(v)
	}
	runs := &runtime.PodStatus{Containers: []runtime.Container{{Name: "c", State: runtime.StateUnknown}}}
	k.report(k.facts(k.withStatus(low), st, runs, false), st, false)
	if v := verdict(static); v != admission.Waiting {
		t.Errorf("the place is given while a container runs: %v", v)
	}
	k.report(k.facts(k.withStatus(low), st, &runtime.PodStatus{}, true), st, true)
	s, _ := k.status.Get("low")
	if s.Phase != corev1.PodFailed || s.Reason != "Preempting" || s.Message != "Preempted in order to admit critical pod" {
		t.Errorf("status %s %s: %s", s.Phase, s.Reason, s.Message)
	}
	if !slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "TerminationByKubelet" &&
			c.Message == "Pod was preempted by Kubelet to accommodate a critical pod."
	}) {
		t.Errorf("conditions %v", s.Conditions)
	}
	if v := verdict(static); v != admission.Admitted {
		t.Errorf("the critical pod: %v", v)
	}
}
