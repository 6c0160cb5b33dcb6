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

type priorityLevel = flowcontrolv1.PriorityLevelConfiguration

// What a Limited level has that does not say it.
const (
	defaultShares      = 30
	defaultQueues      = 64
	defaultHandSize    = 8
	defaultQueueLength = 50
)

func priorityLevelRow() resources.Row {
	spec := flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()
	limited, queuing := flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc(),
		flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
	return resources.Row{
		GVK:      flowcontrolv1.SchemeGroupVersion.WithKind("PriorityLevelConfiguration"),
		Resource: "prioritylevelconfigurations", Singular: "prioritylevelconfiguration",
		StoragePath:  "prioritylevelconfigurations",
		New:          resources.Make[priorityLevel],
		Strategy:     priorityLevelStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(priorityLevelStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Type", spec["type"]),
			resources.Column("NominalConcurrencyShares", limited["nominalConcurrencyShares"]),
			resources.Column("Queues", queuing["queues"]),
			resources.Column("HandSize", queuing["handSize"]),
			resources.Column("QueueLengthLimit", queuing["queueLengthLimit"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(l *priorityLevel, now time.Time) []any {
			var shares, queues, hand, length any = "<none>", "<none>", "<none>", "<none>"
			if limited := l.Spec.Limited; limited != nil {
				if n := limited.NominalConcurrencyShares; n != nil {
					shares = int64(*n)
				}
				if q := limited.LimitResponse.Queuing; q != nil {
					queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
				}
			}
			return []any{l.Name, string(l.Spec.Type), shares, queues, hand, length,
				resources.Age(l.CreationTimestamp, now)}
		}),
	}
}

func priorityLevelStrategy() resources.Typed[*priorityLevel] {
	return resources.Typed[*priorityLevel]{
		Default:       defaultPriorityLevel,
		PrepareCreate: func(l *priorityLevel) { l.Status = flowcontrolv1.PriorityLevelConfigurationStatus{} },
		PrepareUpdate: func(obj, old *priorityLevel) { obj.Status = *old.Status.DeepCopy() },
		Validate:      validatePriorityLevel,
		ValidateUpdate: func(obj, _ *priorityLevel) field.ErrorList {
			return append(validatePriorityLevel(obj), priorityLevelConditions(obj)...)
		},
		SpecChanged: func(obj, old *priorityLevel) bool {
			return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
		},
	}
}

func priorityLevelStatusStrategy() resources.Typed[*priorityLevel] {
	s := priorityLevelStrategy()
	s.PrepareUpdate = func(obj, old *priorityLevel) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
	}
	s.Resets = []string{"spec", "metadata"}
	s.ValidateUpdate = func(obj, _ *priorityLevel) field.ErrorList { return priorityLevelConditions(obj) }
	s.SpecChanged = nil
	return s
}

func priorityLevelConditions(p *priorityLevel) field.ErrorList {
	return conditionTypes(p.Status.Conditions, func(c flowcontrolv1.PriorityLevelConfigurationCondition) string {
		return string(c.Type)
	})
}

// defaultPriorityLevel: shares of 0 that a Limited level says stay 0 (a jail).
func defaultPriorityLevel(l *priorityLevel) {
	if e := l.Spec.Exempt; e != nil {
		defaults.SetPtr(&e.NominalConcurrencyShares, 0)
		defaults.SetPtr(&e.LendablePercent, 0)
	}
	if limited := l.Spec.Limited; limited != nil {
		defaults.SetPtr(&limited.NominalConcurrencyShares, defaultShares)
		defaults.SetPtr(&limited.LendablePercent, 0)
		if q := limited.LimitResponse.Queuing; q != nil {
			defaults.Set(&q.Queues, defaultQueues)
			defaults.Set(&q.HandSize, defaultHandSize)
			defaults.Set(&q.QueueLengthLimit, defaultQueueLength)
		}
	}
}
