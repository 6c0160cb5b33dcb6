package volumebinding

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func volume(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{"a": "b"}}}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.StorageClassName = "s"
	v.Status.Phase = corev1.VolumeAvailable
	change(v)
	return v
}

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u", ResourceVersion: "7"}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.StorageClassName = ptr.To("s")
	change(c)
	return c
}

// TestMismatch: each thing in which the two may differ, with upstream's words.
func TestMismatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		volume func(*corev1.PersistentVolume)
		claim  func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		{func(*corev1.PersistentVolume) {}, func(*corev1.PersistentVolumeClaim) {}, ""},
		{func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1023Mi")
		}, func(*corev1.PersistentVolumeClaim) {}, "requested PV is too small"},
		{func(v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = ""
		}, func(*corev1.PersistentVolumeClaim) {}, "storageClassName does not match"},
		{func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "t"}
		}, func(*corev1.PersistentVolumeClaim) {}, "storageClassName does not match"},
		{func(*corev1.PersistentVolume) {}, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeAttributesClassName = ptr.To("x")
		}, "volumeAttributesClassName does not match"},
		{func(*corev1.PersistentVolume) {}, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}, "incompatible volumeMode"},
		{func(*corev1.PersistentVolume) {}, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadOnlyMany)
		}, "incompatible accessMode"},
	} {
		if got := Mismatch(volume(c.volume), claim(c.claim)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestClaimable(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, c := range map[string]struct {
		volume   func(*corev1.PersistentVolume)
		selector *metav1.LabelSelector
		want     bool
	}{
		"as asked":          {volume: func(*corev1.PersistentVolume) {}, want: true},
		"not yet available": {volume: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending }},
		"released":          {volume: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }},
		"being deleted":     {volume: func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &now }},
		"of another": {volume: func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "d"}
		}},
		"of another class": {volume: func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "t" }},
		"selected": {volume: func(*corev1.PersistentVolume) {},
			selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, want: true},
		"not selected": {volume: func(*corev1.PersistentVolume) {},
			selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}},
		"unreadable selector": {volume: func(*corev1.PersistentVolume) {},
			selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}},
	} {
		if got := Claimable(volume(c.volume), claim(func(x *corev1.PersistentVolumeClaim) {
			x.Spec.Selector = c.selector
		})); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestBind: what is chosen is noted so that it can be undone; what a user wrote stays the user's.
func TestBind(t *testing.T) {
	t.Parallel()
	c := claim(func(*corev1.PersistentVolumeClaim) {})
	chosen, changed := Bind(volume(func(*corev1.PersistentVolume) {}), c)
	if !changed || chosen.Annotations[BoundByController] != "yes" || chosen.Spec.ClaimRef.UID != "u" ||
		chosen.Spec.ClaimRef.ResourceVersion != "7" || !Meant(chosen, c) {
		t.Errorf("chosen: %+v", chosen)
	}
	if _, again := Bind(chosen, c); again {
		t.Error("bound twice")
	}
	if back, changed := Unbind(chosen); !changed || back.Spec.ClaimRef != nil || len(back.Annotations) > 0 ||
		chosen.Annotations[BoundByController] != "yes" {
		t.Errorf("unbound: %+v", back)
	}
	written := volume(func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c"}
	})
	bound, changed := Bind(written, c)
	if !changed || bound.Spec.ClaimRef.UID != "u" || len(bound.Annotations) > 0 {
		t.Errorf("written by the user: %+v", bound)
	}
	if back, changed := Unbind(bound); !changed || back.Spec.ClaimRef == nil || back.Spec.ClaimRef.UID != "" {
		t.Errorf("unbound, written by the user: %+v", back)
	}
	if Meant(bound, claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "other" })) {
		t.Error("meant is a claim of the same name that is another")
	}
	done, changed := Complete(c, bound)
	if _, again := Complete(done, bound); !changed || again || done.Spec.VolumeName != "v" ||
		done.Annotations[BindCompleted] == "" || done.Annotations[BoundByController] == "" {
		t.Errorf("completed: %+v", done)
	}
	named, _ := Complete(claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), bound)
	if _, ours := named.Annotations[BoundByController]; ours {
		t.Error("a volume that the user named is noted as chosen")
	}
}

// TestAnswers: the class of a volume that names the claim does not matter, its size does.
func TestAnswers(t *testing.T) {
	t.Parallel()
	meant := func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef, v.Spec.StorageClassName = &corev1.ObjectReference{Namespace: "ns", Name: "c"}, "other"
	}
	c := claim(func(*corev1.PersistentVolumeClaim) {})
	if !Answers(volume(meant), c) {
		t.Error("a volume of another class that names the claim is not the claim's")
	}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"too small": func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Mi")
		},
		"being deleted":  func(v *corev1.PersistentVolume) { v.DeletionTimestamp = ptr.To(metav1.Now()) },
		"of another":     func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" },
		"names no claim": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil },
		"a block device": func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
	} {
		if Answers(volume(func(v *corev1.PersistentVolume) { meant(v); change(v) }), c) {
			t.Error(name)
		}
	}
}

func TestBetter(t *testing.T) {
	t.Parallel()
	small := volume(func(v *corev1.PersistentVolume) {})
	large := volume(func(v *corev1.PersistentVolume) {
		v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("3Gi")
	})
	many := volume(func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadOnlyMany)
	})
	if !Better(small, large) || Better(large, small) || !Better(large, many) || Better(small, small) {
		t.Error("not the smallest of those with the fewest modes")
	}
}
