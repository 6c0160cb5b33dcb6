package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/trace"
	"bonsai/pkg/trace/traceparent"
)

// The attributes of requests that the semantic conventions have no names for.
const (
	requestVerb        = attribute.Key("bonsai.request.verb")
	requestGroup       = attribute.Key("bonsai.request.group")
	requestResource    = attribute.Key("bonsai.request.resource")
	requestSubresource = attribute.Key("bonsai.request.subresource")
	requestName        = attribute.Key("bonsai.request.name")
	requestAudit       = attribute.Key("bonsai.request.audit_id")
)

// pending is the span of a request, which begins when the caller is known.
type pending struct {
	begun time.Time
	span  *trace.Span
}

type pendingKey struct{}

// trace records the request, if it is to be recorded. It is outside of authentication, so that the span has all of the
// time that the request takes, and outside of recover, which answers when a handler panics. Without a Tracer it is not
// in the chain.
func (s *Server) trace(next http.HandlerFunc) http.HandlerFunc {
	if s.Tracer == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		p := &pending{begun: time.Now()}
		defer func() { p.end(w, r) }() // also if the answer is cut off by a panic
		next(w, r.WithContext(context.WithValue(r.Context(), pendingKey{}, p)))
	}
}

// beginSpan begins the span of a request whose authentication began at a time, and returns its context. A caller that
// is not known, or anonymous, does not decide whether its request is recorded.
func (s *Server) beginSpan(r *http.Request, user *request.User, authentication time.Time) context.Context {
	p, ok := r.Context().Value(pendingKey{}).(*pending)
	if !ok {
		return r.Context()
	}
	known := user != nil && user.Name != request.AnonymousUser
	ctx, span := s.Tracer.Request(r.Context(), r.Method, r.Header.Get(traceparent.Header), known, p.begun)
	if span == nil {
		return ctx
	}
	p.span = span
	now := time.Now()
	var failed error
	if user == nil {
		failed = errUnauthorized
	}
	trace.Past(ctx, "authentication", authentication, now, failed)
	return ctx
}

// The texts that spans have for failures. They are fixed, since an error may repeat what a client sent.
var (
	errUnauthorized = errors.New("the credentials are not valid, or there are none")
	errUndecided    = errors.New("no authorizer could decide")
)

// end ends the span with what is known of the request. It says which object is meant, and nothing of who asks for it,
// of the query, or of what was sent.
func (p *pending) end(w http.ResponseWriter, r *http.Request) {
	if p.span == nil {
		return
	}
	info := request.InfoFrom(r.Context())
	way, code := route(info), http.StatusOK
	if rec, ok := w.(*recorder); ok && rec.code != 0 {
		code = rec.code
	}
	p.span.Rename(method(r.Method) + " " + way)
	about := append(make([]attribute.KeyValue, 0, 10), semconv.HTTPRequestMethodKey.String(method(r.Method)),
		semconv.HTTPRoute(way), semconv.HTTPResponseStatusCode(code), requestVerb.String(info.Verb))
	add := func(key attribute.Key, value string) {
		if value != "" {
			about = append(about, key.String(value))
		}
	}
	if info.IsResource {
		about = append(about, requestGroup.String(info.APIGroup), requestResource.String(info.Resource))
		add(semconv.K8SNamespaceNameKey, info.Namespace)
		add(requestSubresource, info.Subresource)
		add(requestName, info.Name)
	}
	if id := w.Header()["Audit-Id"]; len(id) > 0 {
		add(requestAudit, id[0])
	}
	p.span.Set(about...)
	if code >= http.StatusInternalServerError {
		p.span.Fail(fmt.Errorf("%d %s", code, http.StatusText(code)))
	}
	p.span.End()
}

// method is the request's method; clients can invent others, which the conventions call _OTHER.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "_OTHER"
}

// route is the request's path with the names in it replaced: there are few of them, and none has what clients write
// there. A path that is no resource's is cut after its first part.
func route(info *request.Info) string {
	if !info.IsResource {
		first, _, more := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/")
		switch {
		case !wellKnown(first):
			return "/{path}"
		case more:
			return "/" + first + "/{path}"
		}
		return "/" + first
	}
	var b strings.Builder
	b.WriteString("/" + info.APIPrefix)
	if info.APIGroup != "" {
		b.WriteString("/" + info.APIGroup)
	}
	b.WriteString("/" + info.APIVersion)
	if info.WatchPrefix {
		b.WriteString("/watch")
	}
	if info.InNamespace {
		b.WriteString("/namespaces/{namespace}")
	}
	b.WriteString("/" + info.Resource)
	if info.Name != "" {
		b.WriteString("/{name}")
	}
	if info.Subresource != "" {
		b.WriteString("/" + info.Subresource)
	}
	if len(info.Parts) > 3 {
		b.WriteString("/{path}")
	}
	return b.String()
}

// wellKnown reports whether a path of this server begins so. Others are names that clients invent.
func wellKnown(first string) bool {
	switch first {
	case "", "api", "apis", "openapi", "openid", ".well-known", "healthz", "livez", "readyz", "metrics", "version",
		"debug", "statusz", "flagz", "logs":
		return true
	}
	return false
}
