package podtemplate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHash has the value that Kubernetes gives to the template of `kubectl create deployment web --image=busybox`.
func TestHash(t *testing.T) {
	t.Parallel()
	grace := int64(30)
	tpl := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "busybox", Image: "busybox", TerminationMessagePath: "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullAlways,
			}},
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			DNSPolicy:       corev1.DNSClusterFirst,
			SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler",
		},
	}
	plain := Hash(tpl, nil)
	if plain != "5b8cc8fdbb" {
		t.Errorf("hash = %s", plain)
	}
	if Hash(tpl, new(int32(1))) == plain {
		t.Error("the collision count must change the hash")
	}
}
