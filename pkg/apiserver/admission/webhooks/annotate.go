package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	names "k8s.io/apimachinery/pkg/util/validation"

	vocabulary "bonsai/pkg/apiserver/request"
)

// The prefixes of what is said of webhooks in the audit log; round and index of the webhook follow.
const (
	auditMutation       = "mutation.webhook.admission.k8s.io/"
	auditPatch          = "patch.webhook.admission.k8s.io/"
	auditFailedOpen     = "failed-open.mutation.webhook.admission.k8s.io/"
	auditFailedOpenVali = "failed-open.validating.webhook.admission.k8s.io/"
)

// turn is which call of a request's a webhook's is: the round of mutating plug-ins, and its place among the webhooks
// (of mutating ones among all that there are, of validating ones among those that are called).
func turn(second bool, index int) string {
	round := 0
	if second {
		round = 1
	}
	return fmt.Sprintf("round_%d_index_%d", round, index)
}

// mutationNote and patchNote are the values of annotations.
type mutationNote struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       bool   `json:"mutated"`
}

type patchNote struct {
	Configuration string          `json:"configuration"`
	Webhook       string          `json:"webhook"`
	Patch         json.RawMessage `json:"patch"`
	PatchType     string          `json:"patchType"`
}

// noteMutation notes what a mutating webhook did. Its patch shows a part of the object, and so only where the object is
// shown.
func noteMutation(ctx context.Context, c *candidate, second, mutated bool, said *admissionv1.AdmissionResponse) {
	audit := vocabulary.AuditOf(ctx)
	if audit == nil {
		return
	}
	at := turn(second, c.index)
	if note, err := json.Marshal(mutationNote{c.configuration, c.Name, mutated}); err == nil {
		audit.Annotate(auditMutation+at, string(note))
	}
	if wanted, _ := audit.Bodies(); !wanted || !mutated || said == nil || said.PatchType == nil {
		return
	}
	if note, err := json.Marshal(patchNote{c.configuration, c.Name, said.Patch, string(*said.PatchType)}); err == nil {
		audit.Annotate(auditPatch+at, string(note))
	}
}

// noteSaid notes what a webhook wants to have said; keys that are none are left out.
func noteSaid(ctx context.Context, hook string, said *admissionv1.AdmissionResponse) {
	audit := vocabulary.AuditOf(ctx)
	if audit == nil || said == nil {
		return
	}
	for k, v := range said.AuditAnnotations {
		if key := hook + "/" + k; !strings.Contains(k, "/") && len(names.IsQualifiedName(key)) == 0 {
			audit.Annotate(key, v)
		}
	}
}
