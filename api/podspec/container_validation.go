package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// containerRules checks containers of one pod: names are unique over all its lists.
type containerRules struct {
	spec      *corev1.PodSpec
	volumes   map[string]*corev1.VolumeSource
	hostUsers bool
	pod       bool // of a pod, not of a template
}

// containers checks spec.containers.
func (r containerRules) containers(cs []corev1.Container, path *field.Path) field.ErrorList {
	if len(cs) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range cs {
		c, p := &cs[i], path.Index(i)
		errs = append(errs, r.common(c, p)...)
		errs = append(errs, uniqueName(names, c.Name, p)...)
		errs = append(errs, validateLifecycle(c.Lifecycle, r.grace(), p.Child("lifecycle"))...)
		errs = append(errs, validateProbes(c, r.grace(), p)...)
		errs = append(errs, validateContainerRestart(c, false, p)...)
	}
	errs = append(errs, hostPortConflicts(cs, path)...)
	return errs
}

// initContainers checks spec.initContainers; those with restartPolicy Always (sidecars) may have probes and hooks.
func (r containerRules) initContainers(cs []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range r.spec.Containers {
		names.Insert(r.spec.Containers[i].Name)
	}
	for i := range cs {
		c, p := &cs[i], path.Index(i)
		errs = append(errs, r.common(c, p)...)
		sidecar := IsSidecar(c)
		errs = append(errs, validateContainerRestart(c, true, p)...)
		errs = append(errs, uniqueName(names, c.Name, p)...)
		errs = append(errs, hostPortConflicts(cs[i:i+1], p)...)
		if sidecar {
			errs = append(errs, validateLifecycle(c.Lifecycle, r.grace(), p.Child("lifecycle"))...)
			errs = append(errs, validateProbes(c, r.grace(), p)...)
			continue
		}
		errs = append(errs, validateInitResizePolicy(c.ResizePolicy, p.Child("resizePolicy"))...)
		if c.Lifecycle != nil {
			errs = append(errs, field.Forbidden(p.Child("lifecycle"),
				"may not be set for init containers without restartPolicy=Always"))
		}
		for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe,
			"readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
			if probe != nil {
				errs = append(errs, field.Forbidden(p.Child(name),
					"may not be set for init containers without restartPolicy=Always"))
			}
		}
	}
	return errs
}

// IsSidecar reports whether an init container goes on running beside the pod's containers. It is the one place that
// knows: the API server, the scheduler, the controllers and the kubelet must see the same containers.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// grace is the pod's grace period in seconds, nil if it has none.
func (r containerRules) grace() *int64 { return r.spec.TerminationGracePeriodSeconds }

func uniqueName(names sets.Set[string], name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil // said by common
	}
	if names.Has(name) {
		return field.ErrorList{field.Duplicate(path.Child("name"), name)}
	}
	names.Insert(name)
	return nil
}

// common checks what all containers share, also ephemeral ones.
func (r containerRules) common(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, validate.Invalid(path.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))...)
	}
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case r.pod && c.Image != strings.TrimSpace(c.Image):
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, validate.OneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, r.ports(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, r.mounts(c, path.Child("volumeMounts"))...)
	errs = append(errs, r.devices(c, path.Child("volumeDevices"))...)
	errs = append(errs, validate.OneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy,
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validateRequirements(&c.Resources, path.Child("resources"))...)
	errs = append(errs, validateClaims(c.Resources.Claims, r.spec.ResourceClaims, path.Child("resources", "claims"))...)
	errs = append(errs, validateResizePolicy(c.ResizePolicy, r.spec.RestartPolicy, path.Child("resizePolicy"))...)
	errs = append(errs, validateSecurityContext(c.SecurityContext, r.hostUsers, path.Child("securityContext"))...)
	return errs
}

// ports checks a container's ports. On the host's network a container's port is the host's.
func (r containerRules) ports(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			msgs := validation.IsValidPortName(p.Name)
			errs = append(errs, validate.Invalid(at.Child("name"), p.Name, msgs)...)
			if len(msgs) == 0 && names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, validate.Invalid(at.Child("containerPort"), p.ContainerPort,
				validation.IsValidPortNum(int(p.ContainerPort)))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, validate.Invalid(at.Child("hostPort"), p.HostPort,
				validation.IsValidPortNum(int(p.HostPort)))...)
		}
		if r.spec.HostNetwork && p.HostPort != 0 && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("hostPort"), p.HostPort,
				"must match `containerPort` when `hostNetwork` is true"))
		}
		errs = append(errs, validate.OneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
			corev1.ProtocolUDP)...)
	}
	return errs
}

// hostPortConflicts finds a host port that is asked for twice.
func hostPortConflicts(cs []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	used := sets.New[string]()
	for i := range cs {
		for j, p := range cs[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
			if used.Has(key) {
				errs = append(errs, field.Duplicate(path.Index(i).Child("ports").Index(j).Child("hostPort"), key))
			}
			used.Insert(key)
		}
	}
	return errs
}

// validateContainerRestart checks a container's own restart policy: Always makes an init container a sidecar; rules on
// exit codes need a policy.
func validateContainerRestart(c *corev1.Container, init bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("restartPolicy")
	if c.RestartPolicy == nil {
		if len(c.RestartPolicyRules) > 0 {
			errs = append(errs, field.Required(at, "must specify restartPolicy when restart rules are used"))
		}
		return append(errs, validateRestartRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
	}
	errs = append(errs, validate.OneOf(at, *c.RestartPolicy, corev1.ContainerRestartPolicyAlways,
		corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	return append(errs, validateRestartRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
}

func validateRestartRules(rules []corev1.ContainerRestartRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range rules {
		at := path.Index(i)
		errs = append(errs, validate.OneOf(at.Child("action"), rule.Action, corev1.ContainerRestartRuleActionRestart,
			corev1.ContainerRestartRuleActionRestartAllContainers)...)
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(at.Child("exitCodes"), "must be specified"))
			continue
		}
		errs = append(errs, validate.OneOf(at.Child("exitCodes", "operator"), rule.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if len(rule.ExitCodes.Values) > 255 {
			errs = append(errs, field.TooMany(at.Child("exitCodes", "values"), len(rule.ExitCodes.Values), 255))
		}
	}
	return errs
}
