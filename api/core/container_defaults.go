package core

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// DefaultContainer fills in what a client left out of a container.
func DefaultContainer(c *corev1.Container) {
	set(&c.ImagePullPolicy, pullPolicyOf(c.Image))
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				setPtr(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	dropStopSignal(c)
	if c.Lifecycle != nil {
		defaultHandler(c.Lifecycle.PostStart)
		defaultHandler(c.Lifecycle.PreStop)
	}
}

// dropStopSignal drops a field of a feature that is off by default.
func dropStopSignal(c *corev1.Container) {
	l := c.Lifecycle
	if l == nil || l.StopSignal == nil {
		return
	}
	l.StopSignal = nil
	if l.PostStart == nil && l.PreStop == nil {
		c.Lifecycle = nil
	}
}

// pullPolicyOf returns the pull policy that an image without one gets: Always for the tag latest, given or implied.
func pullPolicyOf(image string) corev1.PullPolicy {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(ref).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setPtr(&p.GRPC.Service, "")
	}
}

func defaultHandler(h *corev1.LifecycleHandler) {
	if h != nil {
		defaultHTTPGet(h.HTTPGet)
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a != nil {
		set(&a.Path, "/")
		set(&a.Scheme, corev1.URISchemeHTTP)
	}
}
