package apiserver

import (
	"context"
	"fmt"
	"net/http"

	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// audit notes requests of callers that are known, as the audit policy asks for. Without a policy it is no filter at
// all.
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
		if refused := rec.Received(); refused {
			s.Auditor.Metrics.Rejected()
			http.Error(w, fmt.Sprintf("Internal Server Error: %q: failed to store audit event", r.RequestURI),
				http.StatusInternalServerError)
			return
		}
		answer := rec.Writer(w, rest.LongRunning(info))
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

// note makes the record of a request by user, nil if nobody knows who asks, and of none if the policy asks for none.
func (s *Server) note(w http.ResponseWriter, r *http.Request, user *request.User) *audit.Record {
	info := request.InfoFrom(r.Context())
	rec := s.Auditor.Begin(r, info, user, w.Header().Get("Audit-Id"))
	if rec != nil {
		info.Audit = rec
	}
	return rec
}

// refuseUnauthenticated answers a request whose user is not known, or not yet.
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

// noteDecision notes whether a request may be made.
func noteDecision(a request.Audit, allowed bool, reason string, err error) {
	if a == nil {
		return
	}
	decision := "forbid"
	if allowed {
		decision = "allow"
	} else if err != nil {
		reason = "internal error"
	}
	a.Annotate("authorization.k8s.io/decision", decision)
	a.Annotate("authorization.k8s.io/reason", reason)
}

// runAudit lets the sinks of the audit log write. The function that it returns lets them come to their end, when
// nothing is served any more.
func (s *Server) runAudit(ctx context.Context) (end func()) {
	if s.Auditor == nil {
		return func() {}
	}
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
