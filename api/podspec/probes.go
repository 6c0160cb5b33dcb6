package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateProbes checks the three probes of a container.
func validateProbes(c *corev1.Container, grace *int64, path *field.Path) field.ErrorList {
	errs := validateProbe(c.LivenessProbe, grace, path.Child("livenessProbe"))
	if p := c.LivenessProbe; p != nil && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("livenessProbe", "successThreshold"), p.SuccessThreshold,
			"must be 1"))
	}
	errs = append(errs, validateProbe(c.ReadinessProbe, grace, path.Child("readinessProbe"))...)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"),
			p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	errs = append(errs, validateProbe(c.StartupProbe, grace, path.Child("startupProbe"))...)
	if p := c.StartupProbe; p != nil && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("startupProbe", "successThreshold"), p.SuccessThreshold,
			"must be 1"))
	}
	return errs
}

func validateProbe(p *corev1.Probe, grace *int64, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateHandler(handlerOf(p), grace, path)
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds},
		{"timeoutSeconds", p.TimeoutSeconds},
		{"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold},
		{"failureThreshold", p.FailureThreshold},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(n.value), path.Child(n.name))...)
	}
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	return errs
}

// handler is the union of what probes and hooks can do.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func handlerOf(p *corev1.Probe) handler {
	return handler{exec: p.Exec, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC}
}

// validateHandler checks that there is exactly one action, and the action.
func validateHandler(h handler, grace *int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	check := func(name string, isSet bool, validate func(*field.Path) field.ErrorList) {
		if !isSet {
			return
		}
		if n > 0 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
			return
		}
		n++
		errs = append(errs, validate(path.Child(name))...)
	}
	check("exec", h.exec != nil, func(p *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(p.Child("command"), "")}
		}
		return nil
	})
	check("httpGet", h.http != nil, func(p *field.Path) field.ErrorList { return validateHTTPGet(h.http, p) })
	check("tcpSocket", h.tcp != nil, func(p *field.Path) field.ErrorList {
		return validate.Port(h.tcp.Port, p.Child("port"))
	})
	check("grpc", h.grpc != nil, func(p *field.Path) field.ErrorList {
		return validate.Invalid(p.Child("port"), h.grpc.Port, validation.IsValidPortNum(int(h.grpc.Port)))
	})
	check("sleep", h.sleep != nil, func(p *field.Path) field.ErrorList { return validateSleep(h.sleep, grace, p) })
	if n == 0 {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(a *corev1.HTTPGetAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, validate.Port(a.Port, path.Child("port"))...)
	errs = append(errs, validate.OneOf(path.Child("scheme"), a.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for _, h := range a.HTTPHeaders {
		errs = append(errs, validate.Invalid(path.Child("httpHeaders"), h.Name, validation.IsHTTPHeaderName(h.Name))...)
	}
	return errs
}

func validateSleep(a *corev1.SleepAction, grace *int64, path *field.Path) field.ErrorList {
	if grace != nil && (a.Seconds < 0 || a.Seconds > *grace) {
		return field.ErrorList{field.Invalid(path, a.Seconds,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))}
	}
	return nil
}

func validateLifecycle(l *corev1.Lifecycle, grace *int64, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	var errs field.ErrorList
	for name, h := range map[string]*corev1.LifecycleHandler{"postStart": l.PostStart, "preStop": l.PreStop} {
		if h != nil {
			errs = append(errs, validateHandler(
				handler{exec: h.Exec, http: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}, grace, path.Child(name))...)
		}
	}
	return errs
}
