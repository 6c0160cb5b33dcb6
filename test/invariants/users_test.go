package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/storage"
)

const (
	namespace = "default"
	elsewhere = "kube-public"
	class     = "pool"
	// guarded is how many pods the budget keeps of the guarded Deployment's five.
	guarded = 3
)

// users change things at random. Of some Deployments they take pods away, of others not: what is available of the
// latter is the controllers' doing alone.
type users struct {
	*place
	ctx  context.Context
	t    *testing.T
	rand *rand.Rand
	made int // names given so far
}

// must fails the test unless it is over or err is one of those that a race with others explains.
func (u *users) must(what string, err error) bool {
	if err == nil {
		return true
	}
	if u.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) &&
		!apierrors.IsTooManyRequests(err) {
		u.t.Errorf("%s: %v", what, err)
	}
	return false
}

// furnish makes nodes, volumes and workloads.
func (u *users) furnish() {
	for i := range nodeCount {
		u.makeNode(i)
	}
	_, err := storage.StorageClasses(u.client).Create(u.ctx,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner",
			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)})
	u.must("making a class", err)
	for i := range 12 {
		u.makeVolume(fmt.Sprint("shared-", i), corev1.ReadWriteOnce)
		u.makeVolume(fmt.Sprint("alone-", i), corev1.ReadWriteOncePod)
	}
	_, err = u.claims.Create(u.ctx,
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "solo"},
			Spec: claimSpec(corev1.ReadWriteOncePod)})
	u.must("making a claim", err)
	for _, name := range []string{"steady-0", "steady-1", "disturbed", "guarded"} {
		u.makeDeployment(name)
	}
	_, err = u.budgets.Create(u.ctx,
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guarded"},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(guarded)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}}})
	u.must("making a budget", err)
	u.makeStatefulSet("ordered", appsv1.OrderedReadyPodManagement, corev1.ReadWriteOnce)
	u.makeStatefulSet("parallel", appsv1.ParallelPodManagement, corev1.ReadWriteOncePod)
}

func (u *users) makeNode(i int) {
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(perNodeCPU),
		corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i),
		Labels:      map[string]string{corev1.LabelHostname: nodeName(i)},
		Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has,
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
					LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}}
	_, err := u.nodes.Create(u.ctx, n)
	u.must("making a node", err)
	_, err = storage.CSINodes(u.client).Create(u.ctx,
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: n.Name}}}})
	u.must("making a CSINode", err)
}

func (u *users) makeVolume(name string, mode corev1.PersistentVolumeAccessMode) {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{mode},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}}}
	_, err := u.volumes.Create(u.ctx, v)
	u.must("making a volume", err)
}

func claimSpec(mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{StorageClassName: new(class),
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}
}

// podSpec asks for milliCPU and uses the claim, if one is named.
func podSpec(milliCPU int, claim string) corev1.PodSpec {
	s := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(int64(milliCPU), resource.DecimalSI)}}}}}
	if claim != "" {
		s.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	return s
}

func template(app string, spec corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: spec}
}

func (u *users) makeDeployment(name string) {
	_, err := u.deployments.Create(u.ctx,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(5)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, podSpec(200, "")), RevisionHistoryLimit: new(int32(2)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(2)),
					MaxUnavailable: new(intstr.FromInt32(1))}}}})
	u.must("making a Deployment", err)
}

func (u *users) makeStatefulSet(name string, policy appsv1.PodManagementPolicyType,
	mode corev1.PersistentVolumeAccessMode) {
	spec := podSpec(200, "")
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	_, err := u.statefulSets.Create(u.ctx,
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
				Template: template(name, spec), PodManagementPolicy: policy,
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{
					{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec(mode)}}}})
	u.must("making a StatefulSet", err)
}

// pattern changes a part of an object's spec.
func pattern[T apiclient.Object](u *users, r *apiclient.Resource[T], name, patch string) {
	_, err := r.Patch(u.ctx, namespace, name, types.MergePatchType, []byte(patch))
	u.must("changing "+name, err)
}

// act does one thing.
func (u *users) act() {
	u.made++
	any := func(names ...string) string { return names[u.rand.IntN(len(names))] }
	label := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/round":"%d"}}}}}`, u.made)
	switch u.rand.IntN(16) {
	case 0, 1, 2:
		pattern(u, u.deployments, any("steady-0", "steady-1", "disturbed"), label)
	case 3, 4:
		pattern(u, u.deployments, any("steady-0", "steady-1", "disturbed"),
			fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+u.rand.IntN(9)))
	case 5:
		limits := [][2]string{{"1", "0"}, {"0", "1"}, {"2", "1"}, {`"25%"`, `"25%"`}, {`"100%"`, "0"},
			{"0", `"60%"`}}[u.rand.IntN(6)]
		pattern(u, u.deployments, any("steady-0", "steady-1", "disturbed"),
			fmt.Sprintf(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":%s,"maxUnavailable":%s}}}}`, limits[0],
				limits[1]))
	case 6:
		pattern(u, u.statefulSets, any("ordered", "parallel"), label)
	case 7:
		pattern(u, u.statefulSets, any("ordered", "parallel"),
			fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+u.rand.IntN(5)))
	case 8, 9:
		u.deletePod(any("disturbed", "ordered", "parallel", "solo"))
	case 10, 11:
		u.evict("guarded")
	case 12:
		u.makeJob()
	case 13:
		u.makePod()
	case 14:
		u.makeOwned()
	case 15:
		u.deleteOwner()
	}
}

// one picks one of the objects with a label, nil if there is none.
func one[T apiclient.Object](u *users, r *apiclient.Resource[T], app string) *T {
	all, err := r.List(u.ctx, namespace, metav1.ListOptions{LabelSelector: "app=" + app})
	if !u.must("listing", err) || len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b T) int { return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time) })
	return &all[u.rand.IntN(len(all))]
}

func (u *users) deletePod(app string) {
	if p := one(u, u.pods, app); p != nil {
		u.note(u.history.deleted, (*p).UID)
		u.must("deleting a pod",
			u.pods.DeleteWith(u.ctx, namespace, (*p).Name,
				metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string((*p).UID))}))
	}
}

func (u *users) evict(app string) {
	if p := one(u, u.pods, app); p != nil && (*p).DeletionTimestamp == nil {
		err := u.pods.CreateSub(u.ctx, namespace, (*p).Name, "eviction",
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: (*p).Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string((*p).UID))}},
			&metav1.Status{})
		if u.must("evicting a pod", err) {
			u.note(u.history.evicted, (*p).UID)
		}
	}
}

func (u *users) makeJob() {
	if all, err := u.jobs.List(u.ctx, namespace, metav1.ListOptions{}); !u.must("listing", err) || len(all) > 12 {
		return
	}
	spec := podSpec(100, "")
	spec.RestartPolicy = corev1.RestartPolicyNever
	replacement := []batchv1.PodReplacementPolicy{batchv1.TerminatingOrFailed, batchv1.Failed}[u.rand.IntN(2)]
	_, err := u.jobs.Create(u.ctx,
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("job-", u.made)},
			Spec: batchv1.JobSpec{Completions: new(int32(6)), Parallelism: new(int32(3)),
				BackoffLimit: new(int32(1000)), CompletionMode: new(batchv1.IndexedCompletion),
				PodReplacementPolicy: &replacement, Template: template("job", spec)}})
	u.must("making a Job", err)
}

// makePod makes a pod of nobody: a large one, or one of those that want the same volume for themselves.
func (u *users) makePod() {
	spec := podSpec(1500, "")
	app := "large"
	if u.rand.IntN(2) == 0 {
		spec, app = podSpec(100, "solo"), "solo"
	}
	_, err := u.pods.Create(u.ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(app, "-", u.made),
			Labels: map[string]string{"app": app}}, Spec: spec})
	u.must("making a pod", err)
	if all, err := u.pods.List(u.ctx, namespace,
		metav1.ListOptions{LabelSelector: "app=" + app}); u.must("listing", err) && len(all) > 3 {
		u.deletePod(app)
	}
}

// makeOwned makes ConfigMaps that are owned by none, one or two others. Some references mean nobody: the owner is in
// another namespace, or of another kind than the reference says. Some that own have the finalizer of a foreground
// deletion that nobody asked for.
func (u *users) makeOwned() {
	for range 3 {
		u.made++
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("map-", u.made),
			Labels: map[string]string{"app": "map"}}}
		kind := "ConfigMap"
		switch u.rand.IntN(6) {
		case 0:
			m.Namespace = elsewhere
		case 1:
			kind = "Secret"
		case 2:
			m.Finalizers = []string{metav1.FinalizerDeleteDependents}
		}
		for range u.rand.IntN(3) {
			if o := one(u, u.configMaps, "map"); o != nil &&
				!slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool {
					return r.UID == (*o).UID
				}) {
				m.OwnerReferences = append(m.OwnerReferences,
					metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: (*o).Name, UID: (*o).UID,
						BlockOwnerDeletion: new(u.rand.IntN(2) == 0)})
			}
		}
		_, err := u.configMaps.Create(u.ctx, m)
		u.must("making a ConfigMap", err)
	}
}

func (u *users) deleteOwner() {
	if o := one(u, u.configMaps, "map"); o != nil {
		u.note(u.history.deleted, (*o).UID)
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
			metav1.DeletePropagationOrphan}[u.rand.IntN(3)]
		u.must("deleting a ConfigMap",
			u.configMaps.DeleteWith(u.ctx, namespace, (*o).Name,
				metav1.DeleteOptions{PropagationPolicy: &policy,
					Preconditions: metav1.NewUIDPreconditions(string((*o).UID))}))
	}
}

// work acts until ctx ends.
func (u *users) work(ctx context.Context) {
	for pause(ctx, 20*time.Millisecond+time.Duration(u.rand.Int64N(int64(80*time.Millisecond)))) {
		u.act()
	}
}
