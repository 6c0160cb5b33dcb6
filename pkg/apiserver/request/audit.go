package request

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditTruncated is upstream's annotation, with the value "true", of an event of the audit log that says less than it
// is asked for.
const AuditTruncated = "audit.k8s.io/truncated"

// Audit takes what the audit log is to say of a request. It may be used by several goroutines.
type Audit interface {
	// Annotate adds an annotation. A key keeps its first value.
	Annotate(key, value string)
	// Bodies tell which objects the audit policy asks for: the client's, the server's.
	Bodies() (request, response bool)
	// RequestObject takes the object that the client sent, RequestPatch the patch, as JSON.
	RequestObject(json []byte)
	RequestPatch(json []byte)
	// Refer takes what the client's object says of itself, where the request's path does not say it.
	Refer(meta metav1.Object)
	// Respond takes the answer, of the media type: at most all of it at once, or in pieces.
	Respond(media string, piece []byte)
	// Impersonate takes whom the caller acts as, and the constraint under which it may; empty: without one.
	Impersonate(u *User, constraint string)
	// Status takes the answer that is a Status.
	Status(s *metav1.Status)
}

// AuditOf returns what the request of ctx is noted in for the audit log; nil: in nothing.
func AuditOf(ctx context.Context) Audit {
	if info := InfoFrom(ctx); info != nil {
		return info.Audit
	}
	return nil
}

// Annotate adds an annotation to what the audit log says of the request of ctx, if it says anything.
func Annotate(ctx context.Context, key, value string) {
	if a := AuditOf(ctx); a != nil {
		a.Annotate(key, value)
	}
}
