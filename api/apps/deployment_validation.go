package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// fieldErrors shortens signatures.
type fieldErrors = field.ErrorList

func specPath(child string) *field.Path { return field.NewPath("spec", child) }

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	path := field.NewPath("spec")
	s := &d.Spec
	errs := apivalidation.ValidateNonnegativeField(int64(deref(s.Replicas)), path.Child("replicas"))
	errs = append(errs, validateSelector(s.Selector, "deployment", path.Child("selector"))...)
	errs = append(errs, validateReplicated(s.Selector, &s.Template, path)...)
	errs = append(errs, validateStrategy(&s.Strategy, path.Child("strategy"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(s.MinReadySeconds),
		path.Child("minReadySeconds"))...)
	if l := s.RevisionHistoryLimit; l != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*l), path.Child("revisionHistoryLimit"))...)
	}
	if p := s.ProgressDeadlineSeconds; p != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*p), path.Child("progressDeadlineSeconds"))...)
		if *p <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p,
				"must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(path.Child("rollingUpdate"),
				"may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		if s.RollingUpdate == nil {
			return field.ErrorList{field.Required(path.Child("rollingUpdate"),
				"this should be defaulted and never be nil")}
		}
		return validateRolling(s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge, path.Child("rollingUpdate"))
	}
	return field.ErrorList{notSupported(path, s, string(appsv1.RecreateDeploymentStrategyType),
		string(appsv1.RollingUpdateDeploymentStrategyType))}
}

// notSupported says which words would do in place of a whole strategy.
func notSupported(path *field.Path, value any, valid ...string) *field.Error {
	err := field.NotSupported(path, "", valid)
	err.BadValue = value
	return err
}

func validateRolling(unavailable, surge *intstr.IntOrString, path *field.Path) field.ErrorList {
	u, s := deref(unavailable), deref(surge)
	errs := validate.IntOrPercent(u, path.Child("maxUnavailable"))
	errs = append(errs, validate.IntOrPercent(s, path.Child("maxSurge"))...)
	if isZero(u) && isZero(s) {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), u, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, validate.AtMostAll(u, path.Child("maxUnavailable"))...)
}

func isZero(v intstr.IntOrString) bool {
	n, ok := validate.Percent(v)
	return v.Type == intstr.Int && v.IntVal == 0 || ok && n == 0
}

func validateDeploymentStatus(obj, old *appsv1.Deployment) field.ErrorList {
	path := field.NewPath("status")
	st := &obj.Status
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"observedGeneration", st.ObservedGeneration},
		{"replicas", int64(st.Replicas)},
		{"updatedReplicas", int64(st.UpdatedReplicas)},
		{"readyReplicas", int64(st.ReadyReplicas)},
		{"availableReplicas", int64(st.AvailableReplicas)},
		{"unavailableReplicas", int64(st.UnavailableReplicas)},
		{"terminatingReplicas", int64(deref(st.TerminatingReplicas))},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(n.value, path.Child(n.name))...)
	}
	if c := st.CollisionCount; c != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*c), path.Child("collisionCount"))...)
		if was := old.Status.CollisionCount; was != nil && *c < *was {
			errs = append(errs, field.Invalid(path.Child("collisionCount"), *c, "cannot be decremented"))
		}
	} else if old.Status.CollisionCount != nil {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), int32(0), "cannot be decremented"))
	}
	for _, n := range []struct {
		name  string
		value int32
	}{{"updatedReplicas", st.UpdatedReplicas}, {"readyReplicas", st.ReadyReplicas},
		{"availableReplicas", st.AvailableReplicas}} {
		if n.value > st.Replicas {
			errs = append(errs, field.Invalid(path.Child(n.name), n.value, "cannot be greater than status.replicas"))
		}
	}
	if st.AvailableReplicas > st.ReadyReplicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), st.AvailableReplicas,
			"cannot be greater than readyReplicas"))
	}
	return errs
}
