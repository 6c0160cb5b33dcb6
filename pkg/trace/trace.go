// Package trace carries the trace context of the request that made an object along with the object, so that every
// component can add its timed step to one story: from the kubectl command to the running container.
//
// The context is a W3C traceparent ("00-<32 hex trace id>-<16 hex span id>-01", https://www.w3.org/TR/trace-context/).
// A client sends it as the HTTP header "traceparent"; the API server keeps it in the object's annotation; a controller that
// makes an object for another one hands it on. Objects made without the header carry no annotation.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation holds the traceparent of the request that made the object; Header is where HTTP carries it.
const (
	Annotation = "trace.bonsai/parent"
	Header     = "Traceparent"
)

var valid = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// New returns a fresh traceparent.
func New() string {
	var b [24]byte
	rand.Read(b[:])
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"
}

// Valid tells whether s is a traceparent of version 00.
func Valid(s string) bool { return len(s) == 55 && valid.MatchString(s) }

// Of returns the object's traceparent, "" if it has none that is valid.
func Of(obj metav1.Object) string {
	if p := obj.GetAnnotations()[Annotation]; Valid(p) {
		return p
	}
	return ""
}

// HandOn copies the traceparent of owner to child, if owner has one and child has none.
func HandOn(child, owner metav1.Object) {
	p := Of(owner)
	if p == "" || Of(child) != "" {
		return
	}
	a := map[string]string{Annotation: p}
	for k, v := range child.GetAnnotations() {
		if k != Annotation {
			a[k] = v
		}
	}
	child.SetAnnotations(a)
}

// Step logs one timed step of obj's story, as a record of the message "step" with the keys trace, step, object, uid, start
// and duration. Objects without a trace context log nothing. Step names are "<component>.<what>": "kubelet.sandbox".
func Step(ctx context.Context, log *slog.Logger, obj metav1.Object, step string, start, end time.Time) {
	p := Of(obj)
	if p == "" {
		return
	}
	log.LogAttrs(ctx, slog.LevelInfo, "step", slog.String("trace", p[3:35]), slog.String("step", step),
		slog.String("object", obj.GetNamespace()+"/"+obj.GetName()), slog.String("uid", string(obj.GetUID())),
		slog.Time("start", start), slog.Duration("duration", end.Sub(start)))
}
