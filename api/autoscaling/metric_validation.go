package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// source is one of the fields of a metric. The metric's type names the one that must be set.
type source struct {
	name     string
	of       autoscalingv2.MetricSourceType
	present  bool
	validate func(at *field.Path) field.ErrorList
}

func sources(m *autoscalingv2.MetricSpec) []source {
	return []source{
		{"object", autoscalingv2.ObjectMetricSourceType, m.Object != nil, func(at *field.Path) field.ErrorList {
			return validateObject(m.Object, at)
		}},
		{"external", autoscalingv2.ExternalMetricSourceType, m.External != nil, func(at *field.Path) field.ErrorList {
			return validateExternal(m.External, at)
		}},
		{"pods", autoscalingv2.PodsMetricSourceType, m.Pods != nil, func(at *field.Path) field.ErrorList {
			return validatePods(m.Pods, at)
		}},
		{"resource", autoscalingv2.ResourceMetricSourceType, m.Resource != nil, func(at *field.Path) field.ErrorList {
			return validateResource(m.Resource, at)
		}},
		{"containerResource", autoscalingv2.ContainerResourceMetricSourceType, m.ContainerResource != nil,
			func(at *field.Path) field.ErrorList {
				return validateContainerResource(m.ContainerResource, at)
			}},
	}
}

// validateMetric: of several sources only the first is looked into; all but that of the type are too many.
func validateMetric(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric source type"))
	}
	all := sources(m)
	var known bool
	var present, others []source
	for _, s := range all {
		if s.present {
			if len(present) == 0 {
				errs = append(errs, s.validate(at.Child(s.name))...)
			}
			present = append(present, s)
		}
		switch {
		case s.of == m.Type && s.present:
			known = true
		case s.of == m.Type:
			known = true
			errs = append(errs, field.Required(at.Child(s.name),
				"must populate information for the given metric source"))
		case s.present:
			others = append(others, s)
		}
	}
	if !known { // which Kubernetes tells twice
		unknown := field.NotSupported(at.Child("type"), m.Type, []autoscalingv2.MetricSourceType{
			autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
			autoscalingv2.ObjectMetricSourceType,
			autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
		})
		errs = append(errs, unknown, unknown)
	}
	if len(present) > 1 {
		for _, s := range others {
			errs = append(errs, field.Forbidden(at.Child(s.name), "must populate the given metric source only"))
		}
	}
	return errs
}

func validateObject(o *autoscalingv2.ObjectMetricSource, at *field.Path) field.ErrorList {
	errs := validateReference(o.DescribedObject, at.Child("describedObject"))
	errs = append(errs, validateIdentifier(o.Metric, at.Child("metric"))...)
	errs = append(errs, validateTarget(&o.Target, at.Child("target"))...)
	if o.Target.Value == nil && o.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"),
			"must set either a target value or averageValue"))
	}
	return errs
}

func validateExternal(e *autoscalingv2.ExternalMetricSource, at *field.Path) field.ErrorList {
	errs := validateIdentifier(e.Metric, at.Child("metric"))
	errs = append(errs, validateTarget(&e.Target, at.Child("target"))...)
	if e.Target.Value == nil && e.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"),
			"must set either a target value for metric or a per-pod target"))
	}
	if e.Target.Value != nil && e.Target.AverageValue != nil {
		errs = append(errs, field.Forbidden(at.Child("target", "value"),
			"may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func validatePods(p *autoscalingv2.PodsMetricSource, at *field.Path) field.ErrorList {
	errs := validateIdentifier(p.Metric, at.Child("metric"))
	errs = append(errs, validateTarget(&p.Target, at.Child("target"))...)
	if p.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"),
			"must specify a positive target averageValue"))
	}
	return errs
}

func validateResource(r *autoscalingv2.ResourceMetricSource, at *field.Path) field.ErrorList {
	return append(validateResourceName(string(r.Name), at), validateResourceTarget(&r.Target, at.Child("target"))...)
}

func validateContainerResource(r *autoscalingv2.ContainerResourceMetricSource, at *field.Path) field.ErrorList {
	errs := validateResourceName(string(r.Name), at)
	if r.Container == "" {
		errs = append(errs, field.Required(at.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, validate.Invalid(at.Child("container"), r.Container,
			validation.IsDNS1123Label(r.Container))...)
	}
	return append(errs, validateResourceTarget(&r.Target, at.Child("target"))...)
}

func validateResourceName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "must specify a resource name")}
	}
	return nil
}

func validateResourceTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := validateTarget(t, at)
	if t.AverageUtilization == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("averageUtilization"),
			"must set either a target raw value or a target utilization"))
	}
	if t.AverageUtilization != nil && t.AverageValue != nil {
		errs = append(errs, field.Forbidden(at.Child("averageValue"),
			"may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateIdentifier(m autoscalingv2.MetricIdentifier, at *field.Path) field.ErrorList {
	return validateSegment(m.Name, "must specify a metric name", at.Child("name"))
}

func validateTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric target type"))
	}
	if t.Type != autoscalingv2.UtilizationMetricType && t.Type != autoscalingv2.ValueMetricType &&
		t.Type != autoscalingv2.AverageValueMetricType {
		errs = append(errs, field.Invalid(at.Child("type"), t.Type,
			"must be either Utilization, Value, or AverageValue"))
	}
	errs = append(errs, validatePositive(t.Value, at.Child("value"))...)
	errs = append(errs, validatePositive(t.AverageValue, at.Child("averageValue"))...)
	if n := t.AverageUtilization; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *n, "must be greater than 0"))
	}
	return errs
}
