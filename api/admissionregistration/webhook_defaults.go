package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/defaults"
)

func defaultMutating(h *admissionregistrationv1.MutatingWebhook) {
	defaults.SetPtr(&h.FailurePolicy, admissionregistrationv1.Fail)
	defaults.SetPtr(&h.MatchPolicy, admissionregistrationv1.Equivalent)
	defaults.SetPtr(&h.NamespaceSelector, metav1.LabelSelector{})
	defaults.SetPtr(&h.ObjectSelector, metav1.LabelSelector{})
	defaults.SetPtr(&h.TimeoutSeconds, int32(10))
	defaults.SetPtr(&h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	defaultCall(&h.ClientConfig, h.Rules)
}

func defaultValidating(h *admissionregistrationv1.ValidatingWebhook) {
	defaults.SetPtr(&h.FailurePolicy, admissionregistrationv1.Fail)
	defaults.SetPtr(&h.MatchPolicy, admissionregistrationv1.Equivalent)
	defaults.SetPtr(&h.NamespaceSelector, metav1.LabelSelector{})
	defaults.SetPtr(&h.ObjectSelector, metav1.LabelSelector{})
	defaults.SetPtr(&h.TimeoutSeconds, int32(10))
	defaultCall(&h.ClientConfig, h.Rules)
}

func defaultCall(c *admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) {
	if c.Service != nil {
		defaults.SetPtr(&c.Service.Port, int32(443))
	}
	for i := range rules {
		defaults.SetPtr(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}
