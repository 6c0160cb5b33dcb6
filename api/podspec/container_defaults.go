package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/defaults"
	"bonsai/api/podspec/downward"
	"bonsai/api/podspec/image"
	"bonsai/api/quantity"
)

// defaultContainer fills in what a client left out of a container.
func defaultContainer(c *corev1.Container) {
	defaults.Set(&c.ImagePullPolicy, image.PullPolicy(c.Image))
	defaults.Set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	defaults.Set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		defaults.Set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			downward.Default(from.FieldRef)
			if from.FileKeyRef != nil {
				defaults.SetPtr(&from.FileKeyRef.Optional, false)
			}
		}
	}
	quantity.RoundUp(c.Resources.Limits)
	quantity.RoundUp(c.Resources.Requests)
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	if c.Lifecycle != nil {
		defaultHandler(c.Lifecycle.PostStart)
		defaultHandler(c.Lifecycle.PreStop)
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	defaults.Set(&p.TimeoutSeconds, 1)
	defaults.Set(&p.PeriodSeconds, 10)
	defaults.Set(&p.SuccessThreshold, 1)
	defaults.Set(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		defaults.SetPtr(&p.GRPC.Service, "")
	}
}

func defaultHandler(h *corev1.LifecycleHandler) {
	if h != nil {
		defaultHTTPGet(h.HTTPGet)
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a != nil {
		defaults.Set(&a.Path, "/")
		defaults.Set(&a.Scheme, corev1.URISchemeHTTP)
	}
}
