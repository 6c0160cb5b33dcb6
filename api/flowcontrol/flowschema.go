package flowcontrol

import (
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
)

type flowSchema = flowcontrolv1.FlowSchema

// defaultPrecedence is the matchingPrecedence of a FlowSchema that does not say one.
const defaultPrecedence = 1000

func flowSchemaRow() resources.Row {
	spec, level := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc(),
		flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()
	return resources.Row{
		GVK: flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema"), Resource: "flowschemas", Singular: "flowschema",
		StoragePath:  "flowschemas",
		New:          resources.Make[flowSchema],
		Strategy:     flowSchemaStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(flowSchemaStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("PriorityLevel", level["name"]),
			resources.Column("MatchingPrecedence", spec["matchingPrecedence"]),
			resources.Column("DistinguisherMethod", spec["distinguisherMethod"]),
			resources.AgeColumn(),
			resources.Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
		},
		Cells: resources.Cells(func(f *flowSchema, now time.Time) []any {
			method := "<none>"
			if m := f.Spec.DistinguisherMethod; m != nil {
				method = string(m.Type)
			}
			return []any{f.Name, f.Spec.PriorityLevelConfiguration.Name, int64(f.Spec.MatchingPrecedence), method,
				resources.Age(f.CreationTimestamp, now), danglingText(&f.Status)}
		}),
	}
}

// danglingText is the status of the condition Dangling, "?" while nobody has set it.
func danglingText(s *flowcontrolv1.FlowSchemaStatus) string {
	if c := Dangling(s); c != nil {
		return string(c.Status)
	}
	return "?"
}

// Dangling is the condition Dangling of a status, nil if it has none.
func Dangling(s *flowcontrolv1.FlowSchemaStatus) *flowcontrolv1.FlowSchemaCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == flowcontrolv1.FlowSchemaConditionDangling {
			return &s.Conditions[i]
		}
	}
	return nil
}

func flowSchemaStrategy() resources.Typed[*flowSchema] {
	return resources.Typed[*flowSchema]{
		Default:       func(f *flowSchema) { defaults.Set(&f.Spec.MatchingPrecedence, defaultPrecedence) },
		PrepareCreate: func(f *flowSchema) { f.Status = flowcontrolv1.FlowSchemaStatus{} },
		PrepareUpdate: func(obj, old *flowSchema) { obj.Status = *old.Status.DeepCopy() },
		Validate:      validateFlowSchema,
		ValidateUpdate: func(obj, _ *flowSchema) field.ErrorList {
			return append(validateFlowSchema(obj), flowSchemaConditions(obj)...)
		},
		SpecChanged: func(obj, old *flowSchema) bool { return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) },
	}
}

func flowSchemaStatusStrategy() resources.Typed[*flowSchema] {
	s := flowSchemaStrategy()
	s.PrepareUpdate = func(obj, old *flowSchema) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
	}
	s.Resets = []string{"spec", "metadata"}
	s.ValidateUpdate = func(obj, _ *flowSchema) field.ErrorList { return flowSchemaConditions(obj) }
	s.SpecChanged = nil
	return s
}

func flowSchemaConditions(f *flowSchema) field.ErrorList {
	return conditionTypes(f.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) string {
		return string(c.Type)
	})
}

// conditionTypes checks that the conditions of a status have types, each another.
func conditionTypes[C any](conditions []C, of func(C) string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range conditions {
		path, t := field.NewPath("status", "conditions").Index(i).Child("type"), of(c)
		if seen[t] {
			errs = append(errs, field.Duplicate(path, t))
		}
		seen[t] = true
		if t == "" {
			errs = append(errs, field.Required(path, ""))
		}
	}
	return errs
}
