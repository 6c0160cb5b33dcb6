package executor

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/images"
)

// TestMissingPullSecret: a missing pull secret has an event only after the pull has failed, because the image may be on
// the node, or public.
func TestMissingPullSecret(t *testing.T) {
	t.Parallel()
	for reason, told := range map[string]bool{"": false, images.ReasonErrImagePull: true,
		images.ReasonImagePullBackOff: false} {
		e, f, _ := newExecutor(t)
		pod := onePod()
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "gone"}}
		if reason != "" {
			f.fail["image"] = &images.Error{Reason: reason}
		}
		if err := e.Act(t.Context(), factsOf(pod), NewPod(), startOf(pod)); err != nil {
			t.Fatal(err)
		}
		const want = "Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed."
		notes := f.took()
		if slices.Contains(notes, "event FailedToRetrieveImagePullSecret") != told || told && f.said != want {
			t.Errorf("%q: %q, %q", reason, notes, f.said)
		}
	}
}
