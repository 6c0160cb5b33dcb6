package authn

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/resultmetrics"
)

// Attempts counts requests by what authentication made of their credentials, and how long it took, under upstream's
// names. A nil *Attempts counts nothing.
type Attempts struct {
	success, failure, failed resultmetrics.Result
	users                    *prometheus.CounterVec
}

// NewAttempts registers at r; nil: nothing is counted.
func NewAttempts(r prometheus.Registerer) *Attempts {
	if r == nil {
		return nil
	}
	of := resultmetrics.New(r, "result",
		prometheus.CounterOpts{Name: "authentication_attempts",
			Help: "[ALPHA] Requests by the result of authentication: 'success', 'failure' without a user, 'error'."},
		prometheus.HistogramOpts{Name: "authentication_duration_seconds",
			Help:    "[ALPHA] Seconds that authentication took, by result.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})
	users := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "authenticated_user_requests",
		Help: "[ALPHA] Authenticated requests by user: 'admin', an e-mail address ('email_id'), or another ('other')."},
		[]string{"username"})
	r.MustRegister(users)
	return &Attempts{of("success"), of("failure"), of("error"), users}
}

// Observe counts the authentication of a request, which began at begun.
func (m *Attempts) Observe(user *request.User, err error, begun time.Time) {
	if m == nil {
		return
	}
	of := &m.failure
	switch {
	case err != nil:
		of = &m.failed
	case user != nil:
		of = &m.success
		m.users.WithLabelValues(kindOf(user.Name)).Inc()
	}
	of.Observe(time.Since(begun))
}

// kindOf is a label for a user: names themselves would be as many series as there are users.
func kindOf(name string) string {
	switch {
	case name == "admin":
		return name
	case strings.Contains(name, "@"):
		return "email_id"
	}
	return "other"
}
