package scheduling

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

// Priorities above highestUserPriority are for the system's own classes.
const (
	highestUserPriority = int32(1000000000)
	systemPrefix        = "system-"
	// clusterCritical and nodeCritical are the two system classes and nodeCriticalPriority the higher of their values.
	clusterCritical         = "system-cluster-critical"
	nodeCritical            = "system-node-critical"
	clusterCriticalPriority = 2 * highestUserPriority
	nodeCriticalPriority    = clusterCriticalPriority + 1000
)

func priorityClassRow() resources.Row {
	doc := schedulingv1.PriorityClass{}.SwaggerDoc()
	boolean := resources.Column("Global-Default", doc["globalDefault"])
	boolean.Type = "boolean"
	return resources.Row{
		GVK: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), Resource: "priorityclasses",
		Singular:    "priorityclass",
		ShortNames:  []string{"pc"},
		StoragePath: "priorityclasses",
		New:         resources.Make[schedulingv1.PriorityClass],
		Strategy: resources.Typed[*schedulingv1.PriorityClass]{
			Default: func(c *schedulingv1.PriorityClass) {
				if c.PreemptionPolicy == nil {
					p := corev1.PreemptLowerPriority
					c.PreemptionPolicy = &p
				}
			},
			Validate: func(c *schedulingv1.PriorityClass) field.ErrorList {
				return append(validatePriorityClass(c), validatePreemption(c.PreemptionPolicy)...)
			},
			ValidateUpdate: validatePriorityClassUpdate,
			SpecChanged:    func(_, _ *schedulingv1.PriorityClass) bool { return false },
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Value", doc["value"]),
			boolean,
			resources.AgeColumn(),
			resources.Column("PreemptionPolicy", doc["preemptionPolicy"]),
		},
		Cells: resources.Cells(func(c *schedulingv1.PriorityClass, now time.Time) []any {
			policy := corev1.PreemptLowerPriority
			if c.PreemptionPolicy != nil {
				policy = *c.PreemptionPolicy
			}
			return []any{c.Name, int64(c.Value), c.GlobalDefault, resources.Age(c.CreationTimestamp, now),
				string(policy)}
		}),
	}
}

// systemClasses are the priority classes that every cluster has.
func systemClasses() []schedulingv1.PriorityClass {
	policy := corev1.PreemptLowerPriority
	class := func(name string, value int32, description string) schedulingv1.PriorityClass {
		return schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
			Description: description, PreemptionPolicy: &policy}
	}
	return []schedulingv1.PriorityClass{
		class(nodeCritical, nodeCriticalPriority,
			"Used for system critical pods that must not be moved from their current node."),
		class(clusterCritical, clusterCriticalPriority,
			"Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
	}
}

// validatePriorityClass: names that start with "system-" and values above a user's belong to the system's classes, as
// they are.
func validatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(c.Name, systemPrefix) {
		if msg := notSystem(c); msg != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+systemPrefix+"' prefix are reserved for system use only. error: "+msg))
		}
	} else if c.Value > highestUserPriority {
		errs = append(errs, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestUserPriority)))
	}
	return errs
}

// validatePreemption checks a new class; an update cannot change the policy.
func validatePreemption(policy *corev1.PreemptionPolicy) field.ErrorList {
	path := field.NewPath("preemptionPolicy")
	switch {
	case policy == nil, *policy == corev1.PreemptLowerPriority, *policy == corev1.PreemptNever:
		return nil
	case *policy == "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, *policy,
		[]corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever})}
}

func notSystem(c *schedulingv1.PriorityClass) string {
	for _, known := range systemClasses() {
		if known.Name != c.Name {
			continue
		}
		switch {
		case known.Value != c.Value:
			return fmt.Sprintf("value of %v PriorityClass must be %v", known.Name, known.Value)
		case known.GlobalDefault != c.GlobalDefault:
			return fmt.Sprintf("globalDefault of %v PriorityClass must be %v", known.Name, known.GlobalDefault)
		}
		return ""
	}
	return c.Name + " is not a known system priority class"
}

func validatePriorityClassUpdate(obj, old *schedulingv1.PriorityClass) field.ErrorList {
	errs := validatePriorityClass(obj)
	if obj.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	if !apiequality.Semantic.DeepEqual(obj.PreemptionPolicy, old.PreemptionPolicy) {
		errs = append(errs, field.Invalid(field.NewPath("preemptionPolicy"), obj.PreemptionPolicy,
			apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}
