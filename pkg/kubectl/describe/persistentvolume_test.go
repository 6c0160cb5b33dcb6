package describe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func term(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: r}
}

// The texts are what kubectl v1.36.3 writes.
func TestPersistentVolumes(t *testing.T) {
	t.Parallel()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	full := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "d1", Labels: map[string]string{"a": "b"}, Finalizers: []string{"a.b/c"},
			DeletionTimestamp: ptr.To(metav1.Unix(940, 0))},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteOnce},
			StorageClassName:              "fast",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
			ClaimRef:                      &corev1.ObjectReference{Namespace: "default", Name: "d"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/x"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					term(corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: "In",
						Values: []string{"n", "m"}}, corev1.NodeSelectorRequirement{Key: "z", Operator: "Exists"}),
					term(),
				}}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeFailed, Message: "mm"},
	}
	want := `Name:              d1
Labels:            a=b
Annotations:       <none>
Finalizers:        [a.b/c]
StorageClass:      fast
Status:            Terminating (lasts 60s)
Claim:             default/d
Reclaim Policy:    Retain
Access Modes:      RWO,ROX
VolumeMode:        Filesystem
Capacity:          1Gi
Node Affinity:     
  Required Terms:  
    Term 0:        kubernetes.io/hostname in [n, m]
                   z exists
    Term 1:        <none>
Message:           mm
Source:
    Type:  LocalVolume (a persistent volume backed by local storage on a node)
    Path:  /x
`
	if got := shown(t, func(d *describer) error { return persistentVolume(d, full) }); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, c := range map[string]struct {
		source corev1.PersistentVolumeSource
		want   string
	}{
		"csi": {corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "x.io", VolumeHandle: "h",
				VolumeAttributes: map[string]string{"a": "b", "c": "d"}}},
			`    Type:              CSI (a Container Storage Interface (CSI) volume source)
    Driver:            x.io
    FSType:            
    VolumeHandle:      h
    ReadOnly:          false
    VolumeAttributes:      a=b
                           c=d
`},
		"iscsi": {corev1.PersistentVolumeSource{
			ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "1.2.3.4", IQN: "iqn", ISCSIInterface: "default"}},
			`    Type:               ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)
    TargetPortal:       1.2.3.4
    IQN:                iqn
    Lun:                0
    ISCSIInterface      default
    FSType:             
    ReadOnly:           false
    Portals:            []
    DiscoveryCHAPAuth:  false
    SessionCHAPAuth:    false
    SecretRef:          nil
    InitiatorName:      <none>
`},
		"host path": {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/y"}},
			`    Type:          HostPath (bare host directory volume)
    Path:          /y
    HostPathType:  <none>
`},
	} {
		got := shown(t, func(d *describer) error { writePersistentSource(d, &c.source); return nil })
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestVolumeClaims(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns", Finalizers: []string{"a.b/c", "k.l/m"}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("x"), VolumeName: "d1",
			VolumeMode: ptr.To(corev1.PersistentVolumeBlock),
			DataSource: &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "s",
				APIGroup: ptr.To("snapshot.storage.k8s.io")}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			Conditions: []corev1.PersistentVolumeClaimCondition{
				{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, Reason: "r", Message: "m",
					LastProbeTime:      metav1.NewTime(time.Unix(0, 0).UTC()),
					LastTransitionTime: metav1.NewTime(time.Unix(60, 0).UTC())}}},
	}
	pod := func(name, uses string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: uses}}}}}}
	}
	want := `Name:          d
Namespace:     ns
StorageClass:  x
Status:        Bound
Volume:        d1
Labels:        <none>
Annotations:   <none>
Finalizers:    [a.b/c k.l/m]
Capacity:      2Gi
Access Modes:  RWO
VolumeMode:    Block
DataSource:
  APIGroup:  snapshot.storage.k8s.io
  Kind:      VolumeSnapshot
  Name:      s
Used By:     a1
             a2
Conditions:
  Type       Status  LastProbeTime                     LastTransitionTime                Reason  Message
  ----       ------  -----------------                 ------------------                ------  -------
  Resizing   True    Thu, 01 Jan 1970 00:00:00 +0000   Thu, 01 Jan 1970 00:01:00 +0000   r       m
`
	pods := []corev1.Pod{pod("a1", "d"), pod("b", "other"), pod("a2", "d")}
	if got := shown(t, func(d *describer) error {
		writeVolumeClaim(d, claim, users(pods, "d"))
		return nil
	}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
