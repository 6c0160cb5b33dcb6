package admissionregistration

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/resources"
)

type (
	mutating   = admissionregistrationv1.MutatingWebhookConfiguration
	validating = admissionregistrationv1.ValidatingWebhookConfiguration
)

func mutatingRow(c *expression.Compiler) resources.Row {
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		Resource: "mutatingwebhookconfigurations", Singular: "mutatingwebhookconfiguration",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "mutatingwebhookconfigurations",
		New:             resources.Make[mutating],
		Strategy: resources.Typed[*mutating]{
			NeedsVersion: true,
			Default: func(m *mutating) {
				for i := range m.Webhooks {
					defaultMutating(&m.Webhooks[i])
				}
			},
			Validate: func(m *mutating) field.ErrorList {
				return validateWebhooks(mutatingHooks(m), tolerated{}, c)
			},
			ValidateUpdate: func(m, old *mutating) field.ErrorList {
				hooks := mutatingHooks(m)
				return validateWebhooks(hooks, toleratedIn(mutatingHooks(old), hooks), c)
			},
			SpecChanged: func(m, old *mutating) bool {
				return !apiequality.Semantic.DeepEqual(m.Webhooks, old.Webhooks)
			},
		}.Strategy(),
		Columns: columns(),
		Cells: resources.Cells(func(m *mutating, now time.Time) []any {
			return cells(&m.ObjectMeta, len(m.Webhooks), now)
		}),
	}
}

func validatingRow(c *expression.Compiler) resources.Row {
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		Resource: "validatingwebhookconfigurations", Singular: "validatingwebhookconfiguration",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "validatingwebhookconfigurations",
		New:             resources.Make[validating],
		Strategy: resources.Typed[*validating]{
			NeedsVersion: true,
			Default: func(v *validating) {
				for i := range v.Webhooks {
					defaultValidating(&v.Webhooks[i])
				}
			},
			Validate: func(v *validating) field.ErrorList {
				return validateWebhooks(validatingHooks(v), tolerated{}, c)
			},
			ValidateUpdate: func(v, old *validating) field.ErrorList {
				hooks := validatingHooks(v)
				return validateWebhooks(hooks, toleratedIn(validatingHooks(old), hooks), c)
			},
			SpecChanged: func(v, old *validating) bool {
				return !apiequality.Semantic.DeepEqual(v.Webhooks, old.Webhooks)
			},
		}.Strategy(),
		Columns: columns(),
		Cells: resources.Cells(func(v *validating, now time.Time) []any {
			return cells(&v.ObjectMeta, len(v.Webhooks), now)
		}),
	}
}

func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.IntColumn("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"),
		resources.AgeColumn(),
	}
}

func cells(m *metav1.ObjectMeta, webhooks int, now time.Time) []any {
	return []any{m.Name, int64(webhooks), resources.Age(m.CreationTimestamp, now)}
}

// mutatingHooks are the webhooks of m as far as both kinds have the same.
func mutatingHooks(m *mutating) []webhook {
	out := make([]webhook, len(m.Webhooks))
	for i := range m.Webhooks {
		h := &m.Webhooks[i]
		out[i] = webhook{ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy,
			MatchPolicy:       h.MatchPolicy,
			NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects,
			TimeoutSeconds: h.TimeoutSeconds, AdmissionReviewVersions: h.AdmissionReviewVersions,
			MatchConditions: h.MatchConditions,
		}, reinvocation: h.ReinvocationPolicy}
	}
	return out
}

func validatingHooks(v *validating) []webhook {
	out := make([]webhook, len(v.Webhooks))
	for i := range v.Webhooks {
		out[i] = webhook{ValidatingWebhook: v.Webhooks[i]}
	}
	return out
}
