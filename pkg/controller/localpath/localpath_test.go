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
				case call.Path == "/api/v1/namespaces/kube-system/configmaps/local-path-config":
					return &corev1.ConfigMap{Data: map[string]string{"image": "i"}}, nil
				case call.Method == "GET":
					return c.claim, c.claimErr
				}
				return call.Object, nil
			}}
			ctl, err := New(fake.Deps(t, start), Config{Root: root})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ctl.act(t.Context(), key{"pvc-u", controller.Key{Namespace: "ns", Name: "c"}},
				action{start: &job{verb: remove, node: "n", dir: "pvc-u", volume: c.judged}})
			if (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			if got := slices.Contains(fake.Names(), "POST /api/v1/namespaces/kube-system/pods"); got != c.removes {
				t.Errorf("removes: %v, want %v", got, c.removes)
			}
		})
	}
}

// TestImage: a helper runs what the ConfigMap names, and without a name there is no helper.
func TestImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings *corev1.ConfigMap
		err      error
		want     string
	}{
		"named":         {settings: &corev1.ConfigMap{Data: map[string]string{"image": "busybox"}}, want: "busybox"},
		"not named":     {settings: &corev1.ConfigMap{}},
		"no settings":   {err: apierrors.NewNotFound(corev1.Resource("configmaps"), "local-path-config")},
		"not permitted": {err: apierrors.NewForbidden(corev1.Resource("configmaps"), "local-path-config", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made *corev1.Pod
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if pod, ok := call.Object.(*corev1.Pod); ok {
					made = pod
					return pod, nil
				}
				return c.settings, c.err
			}}
			ctl, err := New(fake.Deps(t, start), Config{Root: root})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ctl.act(t.Context(), key{"pvc-u", controller.Key{Namespace: "ns", Name: "c"}},
				action{start: &job{verb: create, node: "n", dir: "pvc-u"}})
			if (err == nil) != (c.want != "") || (made != nil) != (c.want != "") {
				t.Fatalf("made %v, error %v", made, err)
			}
			if made != nil && made.Spec.Containers[0].Image != c.want {
				t.Errorf("runs %s, want %s", made.Spec.Containers[0].Image, c.want)
			}
		})
	}
}

// TestLacksDisk: a node lacks disk if it says so, and not if it says nothing, or does not know.
func TestLacksDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		want      bool
	}{
		{corev1.NodeDiskPressure, corev1.ConditionTrue, true}, {corev1.NodeDiskPressure, corev1.ConditionFalse, false},
		{corev1.NodeDiskPressure, corev1.ConditionUnknown, false}, {corev1.NodeReady, corev1.ConditionTrue, false},
	} {
		n := node()
		n.Status.Conditions = []corev1.NodeCondition{{Type: c.condition, Status: c.status}}
		if got := lacksDisk(n); got != c.want {
			t.Errorf("%s is %s: %v", c.condition, c.status, got)
		}
	}
}
