package policies

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/request"

	"github.com/google/cel-go/common/types/ref"
)

// auditFailure is the annotation of the audit log for the validations that do not hold under bindings that ask for
// "Audit".
const auditFailure = "validation.policy.admission.k8s.io/validation_failure"

// maxAnnotation is where the value of an audit annotation is cut, in bytes.
const maxAnnotation = 10 * 1024

// maxTogether bounds what all parameters add to one annotation, in bytes. Their number has no bound, and the audit log
// leaves an annotation out that makes an event too large: whoever makes parameters could hide what the first ones said.
// An event from which something is missing has the annotation request.AuditTruncated.
const maxTogether = 64 * 1024

// remarks are what the audit log is to show of one request.
type remarks struct {
	failed failures
	said   []*annotations // of a policy each
}

// note puts them into the audit log. Failures come first: if the event becomes too large, annotations are left out.
func (r *remarks) note(ctx context.Context) {
	cut := r.failed.cut
	r.failed.note(ctx)
	for _, said := range r.said {
		said.note(ctx)
		cut = cut || said.cut
	}
	if cut {
		request.Annotate(ctx, request.AuditTruncated, "true")
	}
}

// failureNote is one failure in the annotation.
type failureNote struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// failures are the validations of one request that do not hold. The first failure of each validation under each binding
// is always among them, so that no policy's parameters hide what another policy found; further ones are up to
// maxTogether.
type failures struct {
	notes []json.RawMessage // of failureNote
	bytes int
	known map[failing]bool
	cut   bool // some are missing
}

// failing is a validation that does not hold under some parameter.
type failing struct {
	policy, binding string
	validation      int
}

// add notes a validation that does not hold.
func (all *failures) add(policy *policy, b *binding, d *decision) {
	is := failing{policy.name, b.name, d.validation}
	if all.bytes >= maxTogether && all.known[is] {
		all.cut = true
		return
	}
	if all.known == nil {
		all.known = map[failing]bool{}
	}
	all.known[is] = true
	note, err := json.Marshal(failureNote{d.message, policy.name, b.name, d.validation, b.actions})
	if err == nil {
		all.notes, all.bytes = append(all.notes, note), all.bytes+len(note)
	}
}

// note puts them into the audit log.
func (all *failures) note(ctx context.Context) {
	audit := request.AuditOf(ctx)
	if audit == nil || len(all.notes) == 0 {
		return
	}
	if note, err := json.Marshal(all.notes); err == nil {
		audit.Annotate(auditFailure, string(note))
	}
}

// annotations are what the audit annotations of one policy evaluated to, under all bindings and parameters: the
// different values of each key, up to maxTogether.
type annotations struct {
	policy string
	values map[string][]string
	cut    bool // some are missing
}

// add takes the value of one expression. Null and the empty string say nothing.
func (all *annotations) add(key string, v ref.Val) {
	text, ok := expression.Text(v)
	if text = strings.TrimSpace(text); !ok || text == "" {
		return
	}
	if len(text) > maxAnnotation {
		text = strings.ToValidUTF8(text[:maxAnnotation], "")
	}
	together := 0
	for _, known := range all.values[key] {
		together += len(known)
	}
	switch {
	case slices.Contains(all.values[key], text):
	case together >= maxTogether:
		all.cut = true
	default:
		if all.values == nil {
			all.values = map[string][]string{}
		}
		all.values[key] = append(all.values[key], text)
	}
}

// note puts them into the audit log.
func (all *annotations) note(ctx context.Context) {
	for key, values := range all.values {
		request.Annotate(ctx, all.policy+"/"+key, strings.Join(values, ", "))
	}
}
