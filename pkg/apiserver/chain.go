package apiserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/metrics"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/connlimit"
	"bonsai/pkg/safetext"
	"bonsai/pkg/slowclient"
	"bonsai/pkg/trace"
)

// filter wraps a handler in one concern. While a stream is open, all filters are on its goroutine's stack, and a watch
// mostly does nothing. A filter therefore does its own work in a function that has returned before it calls the next
// one, so that its variables do not take stack for hours.
type filter func(http.HandlerFunc) http.HandlerFunc

// chain is the life of a request, first to last.
//
// The order is part of the security: nothing is allowed before impersonation has settled who acts, and no byte of a
// body is read for a caller that may not send it. A turn comes last, so that a slow sender holds none.
func (s *Server) chain(router http.HandlerFunc) http.HandlerFunc {
	filters := []filter{
		s.requestInfo,   // what is asked for: request.Info
		s.observe,       // metrics, status code, Audit-Id
		s.trace,         // the span of the request, with a Tracer
		s.retryLater,    // 429 at the server's end
		s.recover,       // a panic ends this request only
		s.cors,          // which scripts may see the answer
		s.followWatches, // their end
		s.deadline,      // 60 s, 34 s for writes; for watches and streams only for each piece
		s.authenticate,  // who asks: request.User
		s.audit,         // the audit log, from here to the end of the answer
		s.impersonate,   // the user that the caller acts as: request.User
		s.authorize,     // may they
		s.receive,       // the body, which nothing reads earlier
		s.limit,         // a turn, for a request whose body has come
	}
	h := router
	for i := len(filters) - 1; i >= 0; i-- {
		h = filters[i](h)
	}
	return h
}

// requestInfo works out what the request asks for. It takes one snapshot of the catalog for the whole request: routing
// and the handler see the same resources even if one is removed meanwhile.
func (s *Server) requestInfo(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info := rest.InfoOf(r)
		info.Served = s.Catalog.Snapshot()
		info.Stream = s.Aggregated != nil && info.IsResource && httpstream.IsUpgradeRequest(r) &&
			s.Aggregated.Serves(info)
		if !rest.LongRunning(info) {
			growStack()
		}
		next(w, r.WithContext(request.WithInfo(r.Context(), info)))
	}
}

// observe counts the request and sets the headers of every answer. With GoAwayChance it ends some HTTP/2 connections
// after the answer, so that clients spread over the API servers behind a load balancer again.
// It is outside of recover, so that a request that panics is counted with its code 500. net/http turns
// "Connection: close" into GOAWAY on HTTP/2.
func (s *Server) observe(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		info := request.InfoFrom(r.Context())
		info.Waited = &rec.waited
		h := w.Header()
		h["Audit-Id"] = []string{auditID(r)}
		h["Cache-Control"] = []string{"no-cache, private"}
		if s.StrictTransport != "" {
			h["Strict-Transport-Security"] = []string{s.StrictTransport}
		}
		if s.GoAwayChance > 0 && r.ProtoMajor == 2 && rand.Float64() < s.GoAwayChance {
			h.Set("Connection", "close")
		}
		next(rec, r)
		s.requests.Observe(&metrics.Request{Info: info, Served: s.API.Serves(info), HTTP: r, Code: rec.code,
			Took: time.Since(start), Waited: time.Duration(rec.waited.Load()), Bytes: rec.bytes})
	}
}

// maxAuditID bounds the Audit-ID of a client, in bytes: it is in each audit event.
const maxAuditID = 2048

// auditID returns the client's Audit-ID if it has an acceptable length, else a random UUID (version 4). math/rand is
// enough: the id must be unique, and it is no secret.
func auditID(r *http.Request) string {
	if id := r.Header.Get("Audit-Id"); id != "" && len(id) <= maxAuditID {
		return id
	}
	var b [36]byte
	const digits = "0123456789abcdef"
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range b {
		switch i {
		case 8, 13, 18, 23:
			b[i] = '-'
			continue
		}
		b[i] = digits[hi&15]
		hi = hi>>4 | lo<<60
		lo >>= 4
	}
	b[14], b[19] = '4', '8'
	return string(b[:])
}

// recover answers 500 to a request whose handler panicked. If the answer has begun, it cuts the connection instead: a
// client must not take half a list for a whole one.
func (s *Server) recover(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p) // cuts the connection, which is what the handler wants
			}
			s.Log.Error("panic while serving", "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path), "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			if rec, ok := w.(*recorder); ok && rec.code == 0 {
				s.API.WriteError(w, r, apierrors.NewInternalError(
					fmt.Errorf("This request caused apiserver to panic. Look in the logs for details.")))
				return
			}
			panic(http.ErrAbortHandler)
		}()
		next(w, r)
	}
}

// deadline bounds the time of a request. A watch or a stream may last, but its client must keep reading: a slow one
// would hold memory and a connection for as long as it likes.
// It comes before authenticate, so that a token review that hangs cannot hold a request longer than its deadline.
func (s *Server) deadline(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if info := request.InfoFrom(r.Context()); rest.LongRunning(info) {
			stream := slowclient.Stream(w, streamPatience(info))
			defer stream.End()
			defer s.requests.Opened(info, s.API.Serves(info), r)()
			next(stream, r)
			return
		}
		timeout, err := s.timeout(r)
		if err != nil {
			s.refuseUnauthenticated(w, r, err)
			return
		}
		ctx, cancel := whole(r.Context(), timeout)
		defer cancel()
		next(w, r.WithContext(ctx))
		// An answer may have been complete just before.
		if rec, ok := w.(*recorder); ok && rec.code == http.StatusGatewayTimeout && ctx.Err() != nil {
			countTerminated(s, r, http.StatusGatewayTimeout)
		}
	}
}

// countTerminated counts a request that the server ends with a code to protect itself.
func countTerminated(s *Server, r *http.Request, code int) {
	info := request.InfoFrom(r.Context())
	s.requests.Terminated(info, s.API.Serves(info), r, code)
}

// maxWriting is how long a request that changes something here may take at most, as in Kubernetes.
const maxWriting = 34 * time.Second

// longest is the longest time that a request may take. Writes of this server's resources end at maxWriting already.
// Aggregated servers have deadlines of their own.
func (s *Server) longest(info *request.Info) time.Duration {
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		if info.IsResource && (s.Aggregated == nil || !s.Aggregated.Serves(info)) {
			return min(s.RequestTimeout, maxWriting)
		}
	}
	return s.RequestTimeout
}

// timeout returns the server's limit, or the client's (?timeout=) if that is shorter. A client can only shorten it.
func (s *Server) timeout(r *http.Request) (time.Duration, error) {
	longest, v := s.longest(request.InfoFrom(r.Context())), timeoutParam(r)
	if v == "" {
		return longest, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %v", err))
	}
	if d <= 0 {
		return longest, nil
	}
	return min(d, longest), nil
}

// How long the client of a stream may take to read a piece of it. Watches are read by programs. Logs and terminals are
// read by people, who may stop the output and look at it.
const (
	watchPatience = time.Minute
	humanPatience = 10 * time.Minute
)

func streamPatience(info *request.Info) time.Duration {
	if info.Verb == "watch" {
		return watchPatience
	}
	return humanPatience
}

func timeoutParam(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("timeout")
}

// authenticate ends the request with 401 if its credentials are not valid. A request without credentials is
// system:anonymous, if the authenticator has that.
func (s *Server) authenticate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if ctx := s.identified(w, r); ctx != nil {
			next(w, r.WithContext(ctx))
		}
	}
}

// identified returns the context of a request with its user, and with its span, which begins now that it is known
// whose wish to record it counts. If there is no user, it has answered, and returns nil.
func (s *Server) identified(w http.ResponseWriter, r *http.Request) context.Context {
	if s.Tracer == nil {
		if user := s.caller(w, r); user != nil {
			return request.WithUser(r.Context(), user)
		}
		return nil
	}
	begun := time.Now()
	user := s.caller(w, r)
	ctx := s.beginSpan(r, user, begun)
	if user == nil {
		return nil
	}
	return request.WithUser(ctx, user)
}

// caller returns the authenticated user of a request. If there is none, it has answered, and returns nil.
func (s *Server) caller(w http.ResponseWriter, r *http.Request) *request.User {
	begun := time.Now()
	user, err := s.Authenticator.Authenticate(r)
	s.authentications.Observe(user, err, begun)
	if err != nil || user == nil {
		if err != nil {
			s.Log.Info("request not authenticated", "path", safetext.Text(r.URL.Path), "err", err)
		}
		// Over HTTP/2, too: a client that goes on without credentials must connect again for each request.
		w.Header().Set("Connection", "close")
		s.refuseUnauthenticated(w, r, apierrors.NewUnauthorized("Unauthorized"))
		return nil
	}
	if user.Name != request.AnonymousUser {
		connlimit.Trust(r.Context())
	}
	// No handler and no other server gets to see the token.
	r.Header.Del("Authorization")
	return user
}

// authorize asks about the impersonated user, if there is one: the caller's right to impersonate has been checked
// before.
func (s *Server) authorize(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.allowed(w, r) {
			next(w, r)
		}
	}
}

// allowed reports whether the caller may do what is asked. If not, it has answered.
//
// Up to three questions are asked: the request itself, once more after the default roles are known (awaitRoles), and
// the stricter verb of a WebSocket (runsInPod).
func (s *Server) allowed(w http.ResponseWriter, r *http.Request) bool {
	ctx, span := trace.Start(r.Context(), "authorization")
	defer span.End()
	a := authz.Attributes{User: request.UserFrom(ctx), Info: *request.InfoFrom(ctx)}
	start := time.Now()
	decision, reason, err := s.Authorizer.Authorize(ctx, a)
	if decision != authz.Allow && s.awaitRoles(ctx) {
		decision, reason, err = s.Authorizer.Authorize(ctx, a)
	}
	if decision == authz.Allow && runsInPod(r, &a.Info) {
		a.Verb = "create"
		decision, reason, err = s.Authorizer.Authorize(ctx, a)
	}
	s.authorizations.Observe(decision, err, time.Since(start))
	noteDecision(a.Audit, decision == authz.Allow, reason, err)
	if err != nil {
		span.Fail(errUndecided)
	}
	if decision == authz.Allow {
		return true
	}
	w.Header().Set(contentTypeOptions, "nosniff")
	if err != nil { // nobody knows whether the caller may
		s.Log.Warn("authorization failed", "path", safetext.Text(r.URL.Path), "err", err)
		http.Error(w, fmt.Sprintf("Internal Server Error: %q: %v", r.RequestURI, err), http.StatusInternalServerError)
		return false
	}
	if s.Fairness != nil { // where it would have waited, although it does not
		s.Fairness.Classify(a.User, request.InfoFrom(ctx)).SetHeaders(w.Header())
	}
	s.refuse(w, r, forbidden(a, reason))
	return false
}

// contentTypeOptions keeps browsers from guessing the type of a refusal. Its text repeats parts of the request, which
// could be HTML.
const contentTypeOptions = "X-Content-Type-Options"

// runsInPod reports whether a GET is a WebSocket upgrade that does what otherwise takes a POST. A caller who may only
// "get" must not exec. Through nodes/proxy the upgrade reaches the exec of the node's kubelet, which sees the API
// server as the caller.
func runsInPod(r *http.Request, info *request.Info) bool {
	if info.Verb != "get" || info.APIGroup != "" || !httpstream.IsUpgradeRequest(r) {
		return false
	}
	switch info.Resource + "/" + info.Subresource {
	case "pods/exec", "pods/attach", "pods/portforward", "nodes/proxy":
		return true
	}
	return false
}

// forbidden returns the 403 for a request, with upstream's message.
func forbidden(a authz.Attributes, reason string) error {
	err := fmt.Errorf("%s", authz.ForbiddenMessage(a, reason))
	if !a.IsResource {
		e := apierrors.NewForbidden(schema.GroupResource{}, "", err)
		e.ErrStatus.Message = fmt.Sprintf("forbidden: %v", err)
		return e
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}, a.Name, err)
}
