package localpath

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestFree: a directory is removed only if the server, not a cache, says that nobody has it.
func TestFree(t *testing.T) {
	t.Parallel()
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x")
	broken := apierrors.NewInternalError(errors.New("broken"))
	released := has(corev1.VolumeReleased, nil).volume
	released.UID, released.ResourceVersion = "v", "5"
	changed := released.DeepCopy()
	changed.ResourceVersion = "6"
	another := released.DeepCopy()
	another.UID = "w"
	bound := claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-u" })
	elsewhere := claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" })
	younger := claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "later" })
	for name, c := range map[string]struct {
		judged, volume *corev1.PersistentVolume
		volumeErr      error
		claim          *corev1.PersistentVolumeClaim
		claimErr       error
		removes, fails bool
	}{
		"as judged":                    {judged: released, volume: released, removes: true},
		"changed since":                {judged: released, volume: changed},
		"another of its name":          {judged: released, volume: another},
		"gone since":                   {judged: released, volumeErr: missing},
		"server does not say":          {judged: released, volumeErr: broken, fails: true},
		"none, claim gone":             {volumeErr: missing, claimErr: missing, removes: true},
		"none, claim is another":       {volumeErr: missing, claim: younger, removes: true},
		"none, claim has another":      {volumeErr: missing, claim: elsewhere, removes: true},
		"none, claim there":            {volumeErr: missing, claim: claim(nil)},
		"none cached, but there":       {volume: released, claim: bound},
		"none, claim not said":         {volumeErr: missing, claimErr: broken, fails: true},
		"none, volume of it not there": {volumeErr: missing, claim: bound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				switch {
				case call.Method == "GET" && strings.Contains(call.Path, "/persistentvolumes/"):
					return c.volume, c.volumeErr
				case call.Method == "GET":
					return c.claim, c.claimErr
				}
				return call.Object, nil
			}}
			ctl, err := New(fake.Deps(t, start), Config{Root: root, Image: "i"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ctl.act(t.Context(), key{"pvc-u", controller.Key{Namespace: "ns", Name: "c"}}, action{start: &job{verb: remove, node: "n", dir: "pvc-u", volume: c.judged}})
			if (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			if got := slices.Contains(fake.Names(), "POST /api/v1/namespaces/kube-system/pods"); got != c.removes {
				t.Errorf("removes: %v, want %v", got, c.removes)
			}
		})
	}
}
