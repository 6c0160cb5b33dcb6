package podsecurity

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"bonsai/api/kubeversion"
	"bonsai/pkg/apiserver/admission"
)

// The modes of a rule, as the metrics name them.
const (
	modeEnforce = "enforce"
	modeAudit   = "audit"
	modeWarn    = "warn"
)

// What is held against a rule, as the metrics name it.
const (
	kindPod        = "pod"
	kindController = "controller"
)

// metrics count with upstream's names and labels.
type metrics struct {
	evaluations, errors, exemptions *prometheus.CounterVec
	// served is the version of this server.
	served api.Version
}

func newMetrics(r prometheus.Registerer) *metrics {
	v := kubeversion.Parsed()
	m := &metrics{
		served: api.MajorMinorVersion(int(v.Major()), int(v.Minor())),
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pod_security_evaluations_total",
			Help: "Number of policy evaluations that occurred, not counting ignored or exempt requests."},
			[]string{"decision", "policy_level", "policy_version", "mode", "request_operation", "resource",
				"subresource"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pod_security_errors_total",
			Help: "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation."},
			[]string{"fatal", "request_operation", "resource", "subresource"}),
		exemptions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pod_security_exemptions_total",
			Help: "Number of exempt requests, not counting ignored or out of scope requests."},
			[]string{"request_operation", "resource", "subresource"}),
	}
	if r != nil {
		r.MustRegister(m.evaluations, m.errors, m.exemptions)
	}
	return m
}

func (m *metrics) evaluated(a *admission.Attributes, kind, mode string, level api.LevelVersion, allowed bool) {
	decision := "deny"
	if allowed {
		decision = "allow"
	}
	m.evaluations.WithLabelValues(decision, string(level.Level), m.versionLabel(level.Version), mode, operation(a),
		kind, a.Subresource).Inc()
}

// versionLabel bounds the values of the label: whatever is newer than this server is "future".
func (m *metrics) versionLabel(v api.Version) string {
	if !v.Latest() && m.served.Older(v) {
		return "future"
	}
	return v.String()
}

// failed counts what kept the rules from being held; fatal: the request is refused for it.
func (m *metrics) failed(a *admission.Attributes, kind string, fatal bool) {
	m.errors.WithLabelValues(strconv.FormatBool(fatal), operation(a), kind, a.Subresource).Inc()
}

func operation(a *admission.Attributes) string { return strings.ToLower(string(a.Operation)) }
