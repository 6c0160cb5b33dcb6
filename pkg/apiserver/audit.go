package apiserver

import (
	"context"
	"fmt"
	"net/http"

	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// audit records the requests of authenticated callers, as the audit policy asks. Without a policy it adds no filter at
// all. It comes after authenticate, because a policy may select by user, and before impersonate and authorize, so that
// refusals are recorded too. refuseUnauthenticated records the requests that do not get this far.
func (s *Server) audit(next http.HandlerFunc) http.HandlerFunc {
	if s.Auditor == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		info := request.InfoFrom(r.Context())
		rec := s.note(w, r, request.UserFrom(r.Context()))
		if rec == nil {
			next(w, r)
			return
		}
		// With a blocking-strict audit log, a request that cannot be recorded must not be served (upstream's rule).
		if refused := rec.Received(); refused {
			s.Auditor.Metrics.Rejected()
			http.Error(w, fmt.Sprintf("Internal Server Error: %q: failed to store audit event", r.RequestURI),
				http.StatusInternalServerError)
			return
		}
		answer := rec.Writer(w, rest.LongRunning(info))
		// The panic goes on to recover, which is an outer filter and answers the client.
		defer func() {
			p := recover()
			if p == nil {
				rec.Complete(answer.Code())
				return
			}
			rec.Panicked(p)
			panic(p)
		}()
		next(answer, r)
	}
}

// note begins the record of a request and hangs it on the request's Info, where handlers add annotations. user is nil
// if the caller is not authenticated. It returns nil if the policy asks for no record.
func (s *Server) note(w http.ResponseWriter, r *http.Request, user *request.User) *audit.Record {
	info := request.InfoFrom(r.Context())
	rec := s.Auditor.Begin(r, info, user, w.Header().Get("Audit-Id"))
	if rec != nil {
		info.Audit = rec
	}
	return rec
}

// refuseUnauthenticated answers a request with err while its user is unknown: authentication failed, or has not begun.
func (s *Server) refuseUnauthenticated(w http.ResponseWriter, r *http.Request, err error) {
	if s.Auditor == nil {
		s.API.WriteError(w, r, err)
		return
	}
	rec := s.note(w, r, nil)
	if rec == nil {
		s.API.WriteError(w, r, err)
		return
	}
	s.API.WriteError(rec.Writer(w, true), r, err) // its one event is that of the answer's begin, as upstream
}

// noteDecision annotates the audit record with the authorizer's decision, under upstream's names of annotations. a is
// nil if the request is not recorded.
func noteDecision(a request.Audit, allowed bool, reason string, err error) {
	if a == nil {
		return
	}
	switch {
	case allowed:
		a.Annotate("authorization.k8s.io/decision", "allow")
	case err != nil: // there is no decision
		reason = "internal error"
	default:
		a.Annotate("authorization.k8s.io/decision", "forbid")
	}
	a.Annotate("authorization.k8s.io/reason", reason)
}

// runAudit starts the sinks of the audit log. The caller calls end when nothing is served any more: it stops the sinks
// and waits until they have written what is queued.
func (s *Server) runAudit(ctx context.Context) (end func()) {
	if s.Auditor == nil {
		return func() {}
	}
	// The end of ctx begins the shutdown, while requests under way are still recorded. So the sinks outlive ctx.
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Auditor.Run(writing)
	}()
	return func() {
		stop()
		<-done
	}
}
