package volumebinding

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// storage is a cluster of the nodes a, b and c with a local volume each, and two classes whose driver tells how much
// room it has there.
func storage() *volumes.Volumes {
	v := volumes.New(nil)
	later, yes := storagev1.VolumeBindingWaitForFirstConsumer, true
	for class, provisioner := range map[string]string{"made": "csi", "made2": "csi", "mute": "other",
		"local": volumebinding.NoProvisioner} {
		v.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class},
			Provisioner: provisioner, VolumeBindingMode: &later})
	}
	v.DriverChanged(nil, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi"},
		Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}})
	for class, sizes := range map[string][]string{"made": {"10Gi", "20Gi", "100Gi"}, "made2": {"40Gi", "20Gi", "9Gi"}} {
		for i, node := range []string{"a", "b", "c"} {
			v.CapacityChanged(nil, &storagev1.CSIStorageCapacity{
				ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: class + node}, StorageClassName: class,
				Capacity:     new(resource.MustParse(sizes[i])),
				NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node}}})
		}
	}
	for i, node := range []string{"a", "b", "c"} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "p" + node, ResourceVersion: "1"},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
		pv.Spec = corev1.PersistentVolumeSpec{StorageClassName: "local",
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse([]string{"10Gi", "20Gi", "30Gi"}[i])},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
		v.VolumeChanged(nil, pv)
	}
	return v
}

// TestScore has the scores that a kube-scheduler v1.37.2 gave the same nodes for the same claims.
func TestScore(t *testing.T) {
	t.Parallel()
	fill := framework.Shape{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}
	for _, c := range []struct {
		name   string
		shape  framework.Shape
		claims [][2]string
		want   []int64
	}{
		{"one", nil, [][2]string{{"made", "5Gi"}}, []int64{50, 75, 95}},
		{"two classes", nil, [][2]string{{"made", "5Gi"}, {"made2", "3Gi"}}, []int64{72, 80, 81}},
		{"two of a class", nil, [][2]string{{"made", "5Gi"}, {"made", "2Gi"}}, []int64{30, 65, 93}},
		{"a volume that is there", nil, [][2]string{{"local", "7Gi"}}, []int64{30, 65, 77}},
		{"what is there decides", nil, [][2]string{{"local", "7Gi"}, {"made", "9Gi"}}, []int64{30, 65, 77}},
		{"a driver that tells nothing", nil, [][2]string{{"mute", "7Gi"}}, []int64{0, 0, 0}},
		{"to fill nodes", fill, [][2]string{{"made", "5Gi"}}, []int64{50, 25, 5}},
	} {
		v, pod := storage(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
		for i, claim := range c.claims {
			name := fmt.Sprint("c", i)
			pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
				ResourceVersion: "1"}}
			pvc.Spec.StorageClassName = &claim[0]
			pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(claim[1])}
			v.ClaimChanged(nil, pvc)
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		}
		p, info, state := &Plugin{Volumes: v, Shape: c.shape}, model.NewPodInfo(pod), &framework.CycleState{}
		if _, st := p.PreFilter(state, info, nil); !st.IsSuccess() {
			t.Fatalf("%s: %v", c.name, st)
		}
		if st := p.PreScore(state, info, nil, nil); !st.IsSuccess() {
			t.Errorf("%s: %v", c.name, st)
		}
		var got []int64
		for _, node := range []string{"a", "b", "c"} {
			got = append(got, p.Score(state, info, model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: node, Labels: map[string]string{corev1.LabelHostname: node}}})))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	state, none := &framework.CycleState{}, &Plugin{Volumes: storage()}
	if st := none.PreScore(state, model.NewPodInfo(&corev1.Pod{}), nil, nil); st == nil || st.Code != framework.Skip {
		t.Errorf("without claims: %v", st)
	}
}
