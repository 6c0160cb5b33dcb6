package apps

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
	"bonsai/api/defaults"
	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func daemonSetRow() resources.Row {
	status := appsv1.DaemonSetStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Singular: "daemonset",
		Namespaced:   true,
		ShortNames:   []string{"ds"},
		Categories:   []string{"all"},
		StoragePath:  "daemonsets",
		New:          resources.Make[appsv1.DaemonSet],
		Readable:     resources.Readable(readableDaemonSet),
		Strategy:     daemonSetStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(daemonSetStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Desired", status["desiredNumberScheduled"]),
			resources.IntColumn("Current", status["currentNumberScheduled"]),
			resources.IntColumn("Ready", status["numberReady"]),
			resources.IntColumn("Up-to-date", status["updatedNumberScheduled"]),
			resources.IntColumn("Available", status["numberAvailable"]),
			resources.Column("Node Selector", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"]),
			resources.AgeColumn(),
			containersColumn(),
			imagesColumn(),
			resources.Wide(resources.Column("Selector", appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"])),
		},
		Cells: resources.Cells(func(d *appsv1.DaemonSet, now time.Time) []any {
			names, images := podspec.ContainerTexts(d.Spec.Template.Spec.Containers)
			st := &d.Status
			return []any{d.Name, int64(st.DesiredNumberScheduled), int64(st.CurrentNumberScheduled),
				int64(st.NumberReady),
				int64(st.UpdatedNumberScheduled), int64(st.NumberAvailable),
				core.SelectorText(d.Spec.Template.Spec.NodeSelector),
				resources.Age(d.CreationTimestamp, now), names, images, selectorText(d.Spec.Selector)}
		}),
	}
}

func daemonSetStrategy() resources.Typed[*appsv1.DaemonSet] {
	return resources.Typed[*appsv1.DaemonSet]{
		Default: defaultDaemonSet,
		PrepareCreate: func(d *appsv1.DaemonSet) {
			d.Status = appsv1.DaemonSetStatus{}
			n, _ := templateGeneration(d) // which can be read by now
			setTemplateGeneration(d, max(n, 1))
		},
		PrepareUpdate: prepareDaemonSetUpdate,
		Validate:      validateDaemonSet,
		ValidateUpdate: func(obj, old *appsv1.DaemonSet) field.ErrorList {
			return append(apivalidation.ValidateImmutableField(obj.Spec.Selector, old.Spec.Selector,
				specPath("selector")), validateDaemonSet(obj)...)
		},
		Warnings: func(obj, old *appsv1.DaemonSet) []string {
			if old != nil && equal.Semantic(&obj.Spec.Template, &old.Spec.Template) {
				return nil
			}
			return templateWarnings(&obj.Spec.Template)
		},
		SpecChanged: func(obj, old *appsv1.DaemonSet) bool { return !equal.Semantic(&obj.Spec, &old.Spec) },
	}
}

func daemonSetStatusStrategy() resources.Typed[*appsv1.DaemonSet] {
	s := daemonSetStrategy()
	s.PrepareUpdate = func(obj, old *appsv1.DaemonSet) {
		obj.Spec = *old.Spec.DeepCopy()
		keepTemplateGeneration(obj, old, false)
	}
	s.ValidateUpdate = validateDaemonSetStatus
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

// prepareDaemonSetUpdate keeps the status, and counts changes of the template in an old annotation that tools still
// read.
func prepareDaemonSetUpdate(obj, old *appsv1.DaemonSet) {
	obj.Status = *old.Status.DeepCopy()
	keepTemplateGeneration(obj, old, !apiequality.Semantic.DeepEqual(obj.Spec.Template, old.Spec.Template))
}

// keepTemplateGeneration gives obj old's template generation, or the next one.
func keepTemplateGeneration(obj, old *appsv1.DaemonSet, next bool) {
	n, err := templateGeneration(old)
	if err != nil {
		return
	}
	if next {
		n++
	}
	setTemplateGeneration(obj, n)
}

func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

// templateGeneration is the count of the template's changes that an old annotation has; 0 without one.
func templateGeneration(d *appsv1.DaemonSet) (int64, error) {
	text, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]
	if !ok {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// readableDaemonSet: to Kubernetes the count is a number, wherever clients write it.
func readableDaemonSet(d *appsv1.DaemonSet) error {
	_, err := templateGeneration(d)
	return err
}

// defaultDaemonSet counts the template's changes from 0 where the client says no number, as Kubernetes does: whoever
// writes the object manages the annotation, whose number is put right as the write is prepared.
func defaultDaemonSet(d *appsv1.DaemonSet) {
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		setTemplateGeneration(d, 0)
	}
	s := &d.Spec
	podspec.DefaultTemplate(&s.Template)
	defaults.Set(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		defaults.SetPtr(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		defaults.SetPtr(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		defaults.SetPtr(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	defaults.SetPtr(&s.RevisionHistoryLimit, 10)
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	path := field.NewPath("spec")
	s := &d.Spec
	var errs field.ErrorList
	if s.Selector != nil {
		errs = validateSelector(s.Selector, "daemonset", path.Child("selector"))
	}
	errs = append(errs, selectsTemplate(s.Selector, &s.Template, path)...)
	errs = append(errs, podspec.ValidateTemplate(&s.Template, path.Child("template"))...)
	if p := s.Template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("template", "spec", "restartPolicy"), p,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if s.Template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("template", "spec", "activeDeadlineSeconds"),
			"activeDeadlineSeconds in DaemonSet is not Supported"))
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(s.MinReadySeconds),
		path.Child("minReadySeconds"))...)
	errs = append(errs, validateDaemonUpdates(&s.UpdateStrategy, path.Child("updateStrategy"))...)
	if l := s.RevisionHistoryLimit; l != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*l), path.Child("revisionHistoryLimit"))...)
	}
	return errs
}

// validateDaemonUpdates: pods are replaced by either taking one away or adding one first, not both.
func validateDaemonUpdates(u *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch u.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{notSupported(path, u,
			string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType))}
	}
	at := path.Child("rollingUpdate")
	if u.RollingUpdate == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	unavailable, surge := deref(u.RollingUpdate.MaxUnavailable), deref(u.RollingUpdate.MaxSurge)
	errs := append(validate.IntOrPercent(unavailable, at.Child("maxUnavailable")),
		validate.AtMostAll(unavailable, at.Child("maxUnavailable"))...)
	errs = append(errs, validate.IntOrPercent(surge, at.Child("maxSurge"))...)
	errs = append(errs, validate.AtMostAll(surge, at.Child("maxSurge"))...)
	switch {
	case isNone(unavailable) && isNone(surge):
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case !isNone(unavailable) && !isNone(surge):
		errs = append(errs, field.Invalid(at.Child("maxSurge"), u.RollingUpdate.MaxSurge,
			"may not be set when maxUnavailable is non-zero"))
	}
	return errs
}

// isNone reports whether v is no number of pods: zero, or nothing that could be read as a number.
func isNone(v intstr.IntOrString) bool {
	_, ok := validate.Percent(v)
	return isZero(v) || v.Type == intstr.String && !ok
}

func validateDaemonSetStatus(obj, old *appsv1.DaemonSet) field.ErrorList {
	path := field.NewPath("status")
	st := &obj.Status
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"currentNumberScheduled", int64(st.CurrentNumberScheduled)},
		{"numberMisscheduled", int64(st.NumberMisscheduled)},
		{"desiredNumberScheduled", int64(st.DesiredNumberScheduled)},
		{"numberReady", int64(st.NumberReady)},
		{"observedGeneration", st.ObservedGeneration},
		{"updatedNumberScheduled", int64(st.UpdatedNumberScheduled)},
		{"numberAvailable", int64(st.NumberAvailable)},
		{"numberUnavailable", int64(st.NumberUnavailable)},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(n.value, path.Child(n.name))...)
	}
	if c, was := st.CollisionCount, old.Status.CollisionCount; was != nil && deref(c) < *was {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), deref(c), "cannot be decremented"))
	}
	return errs
}
