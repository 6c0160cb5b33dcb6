package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	config "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/validation"
	"k8s.io/pod-security-admission/api"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
)

// Configuration is what holds for namespaces that say nothing, and for whom nothing holds.
type Configuration struct {
	// Defaults are nil where everything is allowed.
	Defaults   *api.Policy
	Exemptions config.PodSecurityExemptions
}

// ReadConfiguration reads a PodSecurityConfiguration, JSON or YAML, of any version that Kubernetes reads, strictly.
func ReadConfiguration(doc []byte) (Configuration, error) {
	c, err := load.LoadFromData(doc)
	if err != nil {
		return Configuration{}, err
	}
	if errs := validation.ValidatePodSecurityConfiguration(c); len(errs) > 0 {
		return Configuration{}, errs.ToAggregate()
	}
	defaults, err := config.ToPolicy(c.Defaults)
	if err != nil {
		return Configuration{}, err
	}
	return Configuration{Defaults: &defaults, Exemptions: c.Exemptions}, nil
}

// defaults are what holds for a namespace that says nothing.
func (c *Configuration) defaults() api.Policy {
	if c.Defaults != nil {
		return *c.Defaults
	}
	everything := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	return api.Policy{Enforce: everything, Audit: everything, Warn: everything}
}

// The reasons of an exemption, as the audit log has them.
const (
	exemptNamespace    = "namespace"
	exemptUser         = "user"
	exemptRuntimeClass = "runtimeClass"
)

// exempt reports whether nothing is held against what a request does with a pod, or with what makes pods, and why in
// the audit log.
func (p *plugin) exempt(ctx context.Context, a *admission.Attributes, kind string, spec *corev1.PodSpec) bool {
	e, reason := &p.Configuration.Exemptions, ""
	switch {
	case slices.Contains(e.Namespaces, a.Namespace):
		reason = exemptNamespace
	case a.User != nil && slices.Contains(e.Usernames, a.User.Name):
		reason = exemptUser
	case p.Configuration.sandboxed(spec):
		reason = exemptRuntimeClass
	default:
		return false
	}
	request.Annotate(ctx, api.AuditAnnotationPrefix+api.ExemptionReasonAnnotationKey, reason)
	p.metrics.exemptions.WithLabelValues(operation(a), kind, a.Subresource).Inc()
	return true
}

// sandboxed reports whether a pod is exempt for its runtime class, whoever asks and wherever it is.
func (c *Configuration) sandboxed(spec *corev1.PodSpec) bool {
	return spec.RuntimeClassName != nil && slices.Contains(c.Exemptions.RuntimeClasses, *spec.RuntimeClassName)
}

// tellOfExemption warns of labels that mean nothing, as their namespace is exempt, and reports whether it is.
func (p *plugin) tellOfExemption(a *admission.Attributes, ns *corev1.Namespace, rules api.Policy) bool {
	if !slices.Contains(p.Configuration.Exemptions.Namespaces, ns.Name) {
		return false
	}
	defaults := p.Configuration.defaults()
	if a.Warn != nil && !rules.FullyPrivileged() && !rules.Equivalent(&defaults) {
		a.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", ns.Name,
			asked(ns.Labels, rules)))
	}
	return true
}

// asked is what the labels of a namespace ask for by their rules, except what allows everything.
func asked(labels map[string]string, rules api.Policy) string {
	var out []string
	for _, mode := range []struct {
		name, level, version string
		rule                 api.LevelVersion
	}{
		{modeEnforce, api.EnforceLevelLabel, api.EnforceVersionLabel, rules.Enforce},
		{modeAudit, api.AuditLevelLabel, api.AuditVersionLabel, rules.Audit},
		{modeWarn, api.WarnLevelLabel, api.WarnVersionLabel, rules.Warn},
	} {
		_, level := labels[mode.level]
		_, version := labels[mode.version]
		if (level || version) && mode.rule.Level != api.LevelPrivileged {
			out = append(out, mode.name+"="+mode.rule.String())
		}
	}
	return strings.Join(out, ", ")
}
