// Package podsecurity is the admission plug-in PodSecurity. A namespace's labels name the Pod Security Standard that
// its pods must keep (enforce), and those whose violations are only reported (warn, audit). The standards and the
// labels are those of k8s.io/pod-security-admission.
//
// Pods are refused; what makes pods (deployments and the like) only warns, so that a controller can be put right before
// its pods come. A namespace that becomes stricter keeps the pods it has, and the answer tells which of them break the
// new rule.
package podsecurity

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Config is what the plug-in stands on. All but Metrics and Configuration is required.
type Config struct {
	Namespaces registry.Getter
	Pods       Lister
	// Configuration holds where namespaces say nothing. The zero value asks nothing of anybody.
	Configuration Configuration
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Lister lists the pods of a namespace.
type Lister interface {
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
}

type plugin struct {
	Config
	// standards are made when they are needed for the first time: most clusters have no namespace that asks for them.
	standards func() (policy.Evaluator, error)
	metrics   *metrics
}

// New returns the plug-in.
func New(cfg Config) admission.Plugin {
	standards := sync.OnceValues(func() (policy.Evaluator, error) {
		return policy.NewEvaluator(policy.DefaultChecks(), nil)
	})
	return admission.Plugin{Name: "PodSecurity", Validator: &plugin{cfg, standards, newMetrics(cfg.Metrics)}}
}

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	switch {
	case a.Is(corev1.Resource("namespaces")):
		return p.namespace(ctx, a)
	case a.Is(corev1.Resource("pods")), a.Is(corev1.Resource("pods/ephemeralcontainers")):
		return p.pod(ctx, a)
	case a.Subresource == "":
		return p.template(ctx, a)
	}
	return nil
}

// pod refuses a pod that violates the standard that its namespace enforces, and reports violations of the standards
// that the namespace only warns of or audits.
func (p *plugin) pod(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("a pod is a %T", a.Object)
	}
	if old, ok := a.OldObject.(*corev1.Pod); ok && !changed(pod, old) {
		return nil
	}
	if p.exempt(ctx, a, kindPod, &pod.Spec) {
		return nil
	}
	rules, err := p.rules(ctx, a, kindPod)
	if err != nil {
		return err
	}
	request.Annotate(ctx, api.AuditAnnotationPrefix+api.EnforcedPolicyAnnotationKey, rules.Enforce.String())
	r := p.review(a, kindPod, &pod.ObjectMeta, &pod.Spec)
	result, err := r.of(modeEnforce, rules.Enforce)
	if err != nil {
		return err
	}
	if !result.Allowed {
		return admission.Forbid(a, "violates PodSecurity %q: %s", rules.Enforce.String(), result.ForbiddenDetail())
	}
	return r.tell(ctx, rules)
}

// template warns of pods that will violate the standard that the namespace enforces, warns of or audits. It refuses
// nothing, so that a controller can be put right before its pods come.
func (p *plugin) template(ctx context.Context, a *admission.Attributes) error {
	meta, spec := podOf(a.Object)
	if spec == nil {
		return nil
	}
	if p.exempt(ctx, a, kindController, spec) {
		return nil
	}
	rules, err := p.rules(ctx, a, kindController)
	if err != nil {
		return err
	}
	return p.review(a, kindController, meta, spec).tell(ctx, rules)
}

// rules are those of the object's namespace. Labels that say nothing known count as the strictest.
func (p *plugin) rules(ctx context.Context, a *admission.Attributes, kind string) (api.Policy, error) {
	ns, err := registry.Find[*corev1.Namespace](ctx, p.Namespaces, "", a.Namespace)
	if err != nil {
		p.metrics.failed(a, kind, true)
		return api.Policy{}, fmt.Errorf("failed to lookup namespace %q: %w", a.Namespace, err)
	}
	rules, bad := api.PolicyToEvaluate(ns.Labels, p.Configuration.defaults())
	if len(bad) > 0 {
		p.metrics.failed(a, kind, false)
	}
	return rules, nil
}

// review is one pod that is held against the rules of its namespace.
type review struct {
	*plugin
	a    *admission.Attributes
	kind string // kindPod, kindController
	meta *metav1.ObjectMeta
	spec *corev1.PodSpec
	done map[api.LevelVersion]policy.AggregateCheckResult // several modes may ask for the same
}

func (p *plugin) review(a *admission.Attributes, kind string, meta *metav1.ObjectMeta, spec *corev1.PodSpec) *review {
	return &review{plugin: p, a: a, kind: kind, meta: meta, spec: spec}
}

// of holds the pod against one level, for a mode.
func (r *review) of(mode string, level api.LevelVersion) (policy.AggregateCheckResult, error) {
	result, ok := policy.AggregateCheckResult{Allowed: true}, true
	if level.Level != api.LevelPrivileged {
		if result, ok = r.done[level]; !ok {
			standards, err := r.standards()
			if err != nil {
				return result, err
			}
			result = policy.AggregateCheckResults(standards.EvaluatePod(level, r.meta, r.spec))
			if r.done == nil {
				r.done = map[api.LevelVersion]policy.AggregateCheckResult{}
			}
			r.done[level] = result
		}
	}
	if mode == modeEnforce || !result.Allowed { // what only tells, and has nothing to tell, is not counted
		r.metrics.evaluated(r.a, r.kind, mode, level, result.Allowed)
	}
	return result, nil
}

// tell warns of what the pod breaks, and has it said in the audit log.
func (r *review) tell(ctx context.Context, rules api.Policy) error {
	result, err := r.of(modeAudit, rules.Audit)
	if err != nil {
		return err
	}
	if !result.Allowed {
		request.Annotate(ctx, api.AuditAnnotationPrefix+api.AuditViolationsAnnotationKey,
			fmt.Sprintf("would violate PodSecurity %q: %s", rules.Audit.String(), result.ForbiddenDetail()))
	}
	result, err = r.of(modeWarn, rules.Warn)
	if err == nil && !result.Allowed && r.a.Warn != nil {
		r.a.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", rules.Warn.String(), result.ForbiddenDetail()))
	}
	return err
}

// changed reports whether an update of a pod touches what the standards look at. All else that can be changed of a pod
// says nothing of them.
func changed(pod, old *corev1.Pod) bool {
	return !reflect.DeepEqual(pod.Spec.Containers, old.Spec.Containers) ||
		!reflect.DeepEqual(pod.Spec.InitContainers, old.Spec.InitContainers) ||
		!reflect.DeepEqual(pod.Spec.EphemeralContainers, old.Spec.EphemeralContainers) ||
		!reflect.DeepEqual(profiles(pod), profiles(old))
}

// namespace checks the labels, and tells which pods break a rule that becomes stricter.
func (p *plugin) namespace(ctx context.Context, a *admission.Attributes) error {
	ns, ok := a.Object.(*corev1.Namespace)
	if !ok {
		return fmt.Errorf("a namespace is a %T", a.Object)
	}
	rules, bad := api.PolicyToEvaluate(ns.Labels, p.Configuration.defaults())
	old, isUpdate := a.OldObject.(*corev1.Namespace)
	if !isUpdate {
		if len(bad) > 0 {
			return invalid(ns, bad)
		}
		p.tellOfExemption(a, ns, rules)
		return nil
	}
	before, badBefore := api.PolicyToEvaluate(old.Labels, p.Configuration.defaults())
	if len(bad) > 0 {
		if !reflect.DeepEqual(bad, badBefore) { // what was wrong before must not stand in the way of other changes
			return invalid(ns, bad)
		}
		return nil
	}
	if !stricter(rules.Enforce, before.Enforce) || p.tellOfExemption(a, ns, rules) {
		return nil
	}
	return p.tellOfPods(ctx, a, ns.Name, rules.Enforce)
}

func invalid(ns *corev1.Namespace, bad field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), ns.Name, bad)
}

// stricter reports whether pods that kept the old rule may break the new one. Another version of the same level may be
// either.
func stricter(now, before api.LevelVersion) bool {
	if now.Level == api.LevelPrivileged {
		return false
	}
	return now.Version != before.Version || api.CompareLevels(now.Level, before.Level) > 0
}
