package drain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/write/writetest"
)

func owned(kind string) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: &yes}}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	local := []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	mirror := owned("Node")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	leaving := owned("ReplicaSet")
	leaving.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	for _, c := range []struct {
		name   string
		limits limits
		pod    corev1.Pod
		want   verdict
	}{
		{"of a replica set", limits{}, corev1.Pod{ObjectMeta: owned("ReplicaSet")}, verdict{move: true}},
		{"alone", limits{}, corev1.Pod{}, verdict{reason: aloneFatal}},
		{"alone, forced", limits{force: true}, corev1.Pod{}, verdict{move: true, warning: aloneWarning}},
		{"alone but over", limits{}, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
			verdict{move: true}},
		{"with data", limits{}, corev1.Pod{ObjectMeta: owned("ReplicaSet"), Spec: corev1.PodSpec{Volumes: local}},
			verdict{reason: localFatal}},
		{"with data, allowed", limits{deleteEmptyDir: true},
			corev1.Pod{ObjectMeta: owned("ReplicaSet"), Spec: corev1.PodSpec{Volumes: local}},
			verdict{move: true, warning: localWarning}},
		{"of a daemon set", limits{}, corev1.Pod{ObjectMeta: owned("DaemonSet")}, verdict{reason: daemonFatal}},
		{"of a daemon set, ignored", limits{ignoreDaemonSets: true}, corev1.Pod{ObjectMeta: owned("DaemonSet")},
			verdict{warning: daemonWarning}},
		{"mirror", limits{}, corev1.Pod{ObjectMeta: mirror}, verdict{}},
		{"long on its way out", limits{skipDeleted: 30}, corev1.Pod{ObjectMeta: leaving}, verdict{}},
		{"just on its way out", limits{skipDeleted: 90}, corev1.Pod{ObjectMeta: leaving}, verdict{move: true}},
	} {
		if got := c.limits.judge(&c.pod, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`

func TestCordon(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t, node)
	for _, c := range []struct{ args, want string }{
		{"cordon n --dry-run=client", "node/n cordoned (dry run)\n"},
		{"cordon n", "node/n cordoned\n"},
		{"cordon n", "node/n already cordoned\n"},
		{"cordon", "error: USAGE: cordon NODE [flags]\nSee 'kubectl cordon -h' for help and examples\n"},
		{"cordon n -l a=b", "error: cannot specify both a node name and a --selector option\nSee 'kubectl cordon -h' for help and examples\n"},
		{"cordon nope", "Error from server (NotFound): nodes \"nope\" not found\n"},
	} {
		if got, _ := writetest.Run(t, NewCordon, s.URL, "", strings.Fields(c.args)...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
	if got, _ := writetest.Run(t, NewUncordon, s.URL, "", "uncordon", "n"); got != "node/n uncordoned\n" {
		t.Errorf("uncordon: got %q", got)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t, node,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"nodeName":"n"}}`)
	for _, c := range []struct{ args, want string }{
		{"drain n", "node/n cordoned\nerror: unable to drain node \"n\" due to error: " + aloneFatal +
			": default/p, continuing command...\nThere are pending nodes to be drained:\n n\n" + aloneFatal +
			": default/p\n"},
		{"drain n --force --dry-run=client",
			"node/n already cordoned (dry run)\nevicting pod default/p (dry run)\nnode/n drained (dry run)\nWarning: " +
				aloneWarning + ": default/p\n"},
		{"drain n --force --disable-eviction",
			"node/n already cordoned\npod/p deleted\nnode/n drained\nWarning: " + aloneWarning + ": default/p\n"},
		{"drain n", "node/n already cordoned\nnode/n drained\n"},
		{"drain n --pod-selector=a=(", "error: --pod-selector=<pod_selector> must be a valid label selector\n"},
	} {
		if got, _ := writetest.Run(t, NewCommand, s.URL, "", strings.Fields(c.args)...); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
