// Package trace tells the story of an object in timed steps, from the request that made it to the running container.
//
// The trace of an object is its UID: a UUID has 16 bytes, as a W3C trace-id has (https://www.w3.org/TR/trace-context/).
// So every component that has the object knows its trace, and nothing is written on objects for it. A request has a
// trace of its own, which the client sends in the header "traceparent" ("00-<32 hex trace-id>-<16 hex parent-id>-<2 hex
// flags>"); the step of the API server that makes an object names both, and this links them. The trace of an object's
// owner is the uid in metadata.ownerReferences.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Header is where HTTP carries the trace context of a request.
const Header = "Traceparent"

var valid = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// New returns a fresh trace context for a request.
func New() string {
	var b [24]byte
	rand.Read(b[:])
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"
}

// Valid reports whether s is a trace context of version 00.
func Valid(s string) bool { return len(s) == 55 && valid.MatchString(s) }

// Of returns the trace-id of obj, 32 hex digits; "" if its UID is no UUID.
func Of(obj metav1.Object) string {
	id := strings.ReplaceAll(string(obj.GetUID()), "-", "")
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// Level is that of steps: they show from verbosity 2 (-v=2) on. A record costs its component some 10 µs, which is much
// compared with what the scheduler does for a pod: users without an interest in the steps should not pay for them.
const Level = slog.LevelInfo - 2

// Step logs one timed step of obj's story, as a record of the message "step" with the keys trace, step, object, uid,
// start and duration, and those of more. Step names are "<component>.<what>": "kubelet.sandbox". The record's place in
// the program is the caller's.
func Step(ctx context.Context, log *slog.Logger, obj metav1.Object, step string, start, end time.Time,
	more ...slog.Attr) {
	if log.Enabled(ctx, Level) {
		write(ctx, log, obj, step, start, end, more)
	}
}

// Created logs the step "apiserver.create" of obj, which a request with the trace context parent has made. Its key link
// is the request's trace-id. A request without a valid context logs nothing: only who asks for a story gets a line per
// object.
func Created(ctx context.Context, log *slog.Logger, obj metav1.Object, parent string, start, end time.Time) {
	if log.Enabled(ctx, Level) && Valid(parent) {
		write(ctx, log, obj, "apiserver.create", start, end, []slog.Attr{slog.String("link", parent[3:35])})
	}
}

// write is what both have in common; they call it themselves, because their caller is two calls up.
func write(ctx context.Context, log *slog.Logger, obj metav1.Object, step string, start, end time.Time,
	more []slog.Attr) {
	id := Of(obj)
	if id == "" {
		return
	}
	var caller [1]uintptr
	runtime.Callers(3, caller[:]) // after Callers itself, write, and Step or Created
	r := slog.NewRecord(time.Now(), Level, "step", caller[0])
	r.AddAttrs(slog.String("trace", id), slog.String("step", step),
		slog.String("object", obj.GetNamespace()+"/"+obj.GetName()), slog.String("uid", string(obj.GetUID())),
		slog.Time("start", start), slog.Duration("duration", end.Sub(start)))
	r.AddAttrs(more...)
	// Like slog's own methods, it has nobody to tell that the log cannot be written.
	_ = log.Handler().Handle(ctx, r)
}
