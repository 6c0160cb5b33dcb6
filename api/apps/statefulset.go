package apps

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/podspec/volumes"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func statefulSetRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Singular: "statefulset",
		Namespaced:  true,
		ShortNames:  []string{"sts"},
		Categories:  []string{"all"},
		StoragePath: "statefulsets",
		New:         resources.Make[appsv1.StatefulSet],
		Strategy:    statefulSetStrategy().Strategy(),
		Decoded:     resources.Decoded(nameClaimKinds),
		Subresources: []resources.Subresource{resources.Scale(),
			resources.Status(statefulSetStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Ready", "Number of the pod with ready state"),
			resources.AgeColumn(),
			containersColumn(),
			imagesColumn(),
		},
		Cells: resources.Cells(func(s *appsv1.StatefulSet, now time.Time) []any {
			names, images := podspec.ContainerTexts(s.Spec.Template.Spec.Containers)
			return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, deref(s.Spec.Replicas)),
				resources.Age(s.CreationTimestamp, now), names, images}
		}),
	}
}

func statefulSetStrategy() resources.Typed[*appsv1.StatefulSet] {
	return resources.Typed[*appsv1.StatefulSet]{
		Default:        defaultStatefulSet,
		PrepareCreate:  func(s *appsv1.StatefulSet) { s.Status = appsv1.StatefulSetStatus{} },
		PrepareUpdate:  func(obj, old *appsv1.StatefulSet) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validateNewStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
		ValidateName:   apivalidation.NameIsDNSLabel,
		Warnings:       statefulSetWarnings,
		SpecChanged:    func(obj, old *appsv1.StatefulSet) bool { return !equal.Semantic(&obj.Spec, &old.Spec) },
	}
}

func statefulSetStatusStrategy() resources.Typed[*appsv1.StatefulSet] {
	s := statefulSetStrategy()
	s.PrepareUpdate = func(obj, old *appsv1.StatefulSet) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = validateStatefulSetStatus
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	spec := &s.Spec
	podspec.DefaultTemplate(&spec.Template)
	defaults.Set(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if u := &spec.UpdateStrategy; u.Type == "" { // only who leaves out the type is given the rest
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
		defaults.SetPtr(&u.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if u := &spec.UpdateStrategy; u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate != nil {
		defaults.SetPtr(&u.RollingUpdate.Partition, 0)
		defaults.SetPtr(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	defaults.SetPtr(&spec.PersistentVolumeClaimRetentionPolicy,
		appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	defaults.Set(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaults.Set(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaults.SetPtr(&spec.Replicas, 1)
	defaults.SetPtr(&spec.RevisionHistoryLimit, 10)
	nameClaimKinds(s)
	for i := range spec.VolumeClaimTemplates {
		c := &spec.VolumeClaimTemplates[i]
		volumes.DefaultClaim(&c.Spec)
		defaults.Set(&c.Status.Phase, corev1.ClaimPending)
	}
}

// nameClaimKinds sets the kind of the claim templates, which protobuf does not keep.
func nameClaimKinds(s *appsv1.StatefulSet) {
	for i := range s.Spec.VolumeClaimTemplates {
		defaults.Set(&s.Spec.VolumeClaimTemplates[i].APIVersion, "v1")
		defaults.Set(&s.Spec.VolumeClaimTemplates[i].Kind, "PersistentVolumeClaim")
	}
}

// withClaims is the pod template with what the controller sets in its place: the volumes that pods get of the claim
// templates, instead of its own of those names, and the names of hosts, which are each pod's own.
func withClaims(s *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	t := s.Template
	t.Spec.Hostname, t.Spec.Subdomain = "", ""
	t.Spec.Volumes = nil
	claimed := map[string]bool{}
	for i := range s.VolumeClaimTemplates {
		name := s.VolumeClaimTemplates[i].Name
		claimed[name] = true
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for _, v := range s.Template.Spec.Volumes {
		if !claimed[v.Name] {
			t.Spec.Volumes = append(t.Spec.Volumes, v)
		}
	}
	return &t
}

// validateStatefulSet checks all but the name of the Service; old is nil for a new object. An update does not check the
// claim templates, which cannot change.
func validateStatefulSet(s, old *appsv1.StatefulSet) field.ErrorList {
	path := field.NewPath("spec")
	spec := &s.Spec
	var errs field.ErrorList
	switch spec.PodManagementPolicy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), spec.PodManagementPolicy,
			fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	errs = append(errs, validateStatefulUpdates(&spec.UpdateStrategy, path.Child("updateStrategy"))...)
	errs = append(errs, validateRetention(spec.PersistentVolumeClaimRetentionPolicy,
		path.Child("persistentVolumeClaimRetentionPolicy"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(deref(spec.Replicas)), path.Child("replicas"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(spec.MinReadySeconds),
		path.Child("minReadySeconds"))...)
	for i := range spec.VolumeClaimTemplates {
		if old == nil {
			errs = append(errs, volumes.ValidateClaim(&spec.VolumeClaimTemplates[i].Spec,
				path.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
		}
	}
	if spec.Ordinals != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(spec.Ordinals.Start),
			path.Child("ordinals", "start"))...)
	}
	errs = append(errs, validateSelector(spec.Selector, "statefulset", path.Child("selector"))...)
	if readable(spec.Selector) {
		errs = append(errs, selectsTemplate(spec.Selector, &spec.Template, path)...)
		errs = append(errs, validateStatefulTemplate(s, old, path.Child("template"))...)
	} else {
		errs = append(errs, field.Invalid(path.Child("selector"), spec.Selector, ""))
	}
	if p := spec.Template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("template", "spec", "restartPolicy"), p,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if spec.Template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("template", "spec", "activeDeadlineSeconds"),
			"activeDeadlineSeconds in StatefulSet is not Supported"))
	}
	return errs
}

// validateStatefulTemplate checks the pod template. If old's template is invalid, an update checks only the labels:
// earlier versions of the API did not check it, and such an object must remain scalable.
func validateStatefulTemplate(s, old *appsv1.StatefulSet, path *field.Path) field.ErrorList {
	errs := podspec.ValidateTemplate(withClaims(&s.Spec), path)
	if len(errs) == 0 || old == nil {
		return errs
	}
	was := old.Spec.DeepCopy()
	podspec.DefaultTemplate(&was.Template) // stored before a field had its default
	if len(podspec.ValidateTemplate(withClaims(was), path)) == 0 {
		return errs
	}
	return metavalidation.ValidateLabels(s.Spec.Template.Labels, path.Child("labels"))
}

func validateStatefulUpdates(u *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch u.Type {
	case "":
		return field.ErrorList{field.Required(path.Child("type"), "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if u.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"),
				u.RollingUpdate,
				"only allowed for updateStrategy '"+string(appsv1.RollingUpdateStatefulSetStrategyType)+"'")}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
		return validateStatefulRolling(u.RollingUpdate, path.Child("rollingUpdate"))
	}
	return field.ErrorList{field.Invalid(path, u,
		fmt.Sprintf("must be '%s' or '%s'", appsv1.RollingUpdateStatefulSetStrategyType,
			appsv1.OnDeleteStatefulSetStrategyType))}
}

func validateStatefulRolling(r *appsv1.RollingUpdateStatefulSetStrategy, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := apivalidation.ValidateNonnegativeField(int64(deref(r.Partition)), path.Child("partition"))
	if r.MaxUnavailable == nil {
		return errs
	}
	most, path := *r.MaxUnavailable, path.Child("maxUnavailable")
	errs = append(errs, validate.IntOrPercent(most, path)...)
	// Text that is no percentage counts as the number that it is, or as none.
	if n, ok := validate.Percent(most); ok && n == 0 || !ok && most.IntValue() == 0 {
		errs = append(errs, field.Invalid(path, most, "cannot be 0"))
	}
	return append(errs, validate.AtMostAll(most, path)...)
}

func validateRetention(p *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	valid := []appsv1.PersistentVolumeClaimRetentionPolicyType{appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	check := func(name string, v appsv1.PersistentVolumeClaimRetentionPolicyType) {
		if v != valid[0] && v != valid[1] {
			errs = append(errs, field.NotSupported(path.Child(name), v, valid))
		}
	}
	check("whenDeleted", p.WhenDeleted)
	check("whenScaled", p.WhenScaled)
	return errs
}

// validateNewStatefulSet is validateStatefulSet with what old stateful sets may lack: a service name that is one.
func validateNewStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	errs := validateStatefulSet(s, nil)
	if n := s.Spec.ServiceName; n != "" {
		for _, m := range validation.IsDNS1123Label(n) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "serviceName"), n, m))
		}
	}
	return errs
}

// statefulSetWarnings are the template's, those of claims, which Kubernetes tells of at every update and at another
// path, and one of the set itself.
func statefulSetWarnings(obj, old *appsv1.StatefulSet) []string {
	var w []string
	if old == nil || obj.Generation != old.Generation {
		w = templateWarnings(&obj.Spec.Template)
	}
	for i := range obj.Spec.VolumeClaimTemplates {
		at := specPath("volumeClaimTemplates").Index(i)
		if old != nil {
			at = at.Child("Spec")
		}
		w = append(w, volumes.ClaimFractions(&obj.Spec.VolumeClaimTemplates[i].Spec, at)...)
	}
	if l := obj.Spec.RevisionHistoryLimit; l != nil && *l < 0 {
		w = append(w, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return w
}

// validateStatefulSetUpdate: only what can be carried out on running pods may change.
func validateStatefulSetUpdate(obj, old *appsv1.StatefulSet) field.ErrorList {
	errs := validateStatefulSet(obj, old)
	now, was := &obj.Spec, &old.Spec
	for _, same := range []struct {
		name     string
		now, was any
	}{
		{"selector", now.Selector, was.Selector},
		{"serviceName", now.ServiceName, was.ServiceName},
		{"podManagementPolicy", now.PodManagementPolicy, was.PodManagementPolicy},
		{"volumeClaimTemplates", now.VolumeClaimTemplates, was.VolumeClaimTemplates},
	} {
		errs = append(errs, apivalidation.ValidateImmutableField(same.now, same.was, specPath(same.name))...)
	}
	return errs
}

func validateStatefulSetStatus(obj, old *appsv1.StatefulSet) field.ErrorList {
	path := field.NewPath("status")
	st := &obj.Status
	errs := apivalidation.ValidateNonnegativeField(int64(st.Replicas), path.Child("replicas"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(st.ObservedGeneration,
		path.Child("observedGeneration"))...)
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"readyReplicas", st.ReadyReplicas},
		{"currentReplicas", st.CurrentReplicas},
		{"updatedReplicas", st.UpdatedReplicas},
		{"availableReplicas", st.AvailableReplicas},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(n.value), path.Child(n.name))...)
		if n.value > st.Replicas {
			errs = append(errs, field.Invalid(path.Child(n.name), n.value, "cannot be greater than status.replicas"))
		}
	}
	if st.AvailableReplicas > st.ReadyReplicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), st.AvailableReplicas,
			"cannot be greater than status.readyReplicas"))
	}
	if c, was := st.CollisionCount, old.Status.CollisionCount; was != nil && deref(c) < *was {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), deref(c), "cannot be decremented"))
	}
	return errs
}
