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
const maxTogether = 64 * 1024

// failureNote is one failure in the annotation.
type failureNote struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// failures are the validations of one request that the audit log is to show, up to maxTogether.
type failures struct {
	notes []json.RawMessage // of failureNote
	bytes int
}

// add notes a validation that does not hold.
func (all *failures) add(policy *policy, b *binding, d *decision) {
	if all.bytes >= maxTogether {
		return
	}
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
type annotations map[string][]string

// add takes the value of one expression. Null and the empty string say nothing.
func (all annotations) add(key string, v ref.Val) {
	text, ok := expression.Text(v)
	if text = strings.TrimSpace(text); !ok || text == "" {
		return
	}
	if len(text) > maxAnnotation {
		text = strings.ToValidUTF8(text[:maxAnnotation], "")
	}
	together := 0
	for _, known := range all[key] {
		together += len(known)
	}
	if together < maxTogether && !slices.Contains(all[key], text) {
		all[key] = append(all[key], text)
	}
}

// note puts them into the audit log.
func (all annotations) note(ctx context.Context, policy string) {
	for key, values := range all {
		request.Annotate(ctx, policy+"/"+key, strings.Join(values, ", "))
	}
}
