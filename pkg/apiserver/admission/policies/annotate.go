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

// failureNote is one failure in the annotation.
type failureNote struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// failures are the validations of one request that the audit log is to show.
type failures []failureNote

// add notes a validation that does not hold.
func (all *failures) add(policy *policy, b *binding, d *decision) {
	*all = append(*all, failureNote{d.message, policy.name, b.name, d.validation, b.actions})
}

// note puts them into the audit log.
func (all *failures) note(ctx context.Context) {
	audit := request.AuditOf(ctx)
	if audit == nil || len(*all) == 0 {
		return
	}
	if note, err := json.Marshal(*all); err == nil {
		audit.Annotate(auditFailure, string(note))
	}
}

// annotations are what the audit annotations of one policy evaluated to, under all bindings and parameters: the
// different values of each key.
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
	if !slices.Contains(all[key], text) {
		all[key] = append(all[key], text)
	}
}

// note puts them into the audit log.
func (all annotations) note(ctx context.Context, policy string) {
	for key, values := range all {
		request.Annotate(ctx, policy+"/"+key, strings.Join(values, ", "))
	}
}
