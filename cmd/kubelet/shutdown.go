package main

import (
	"errors"
	"fmt"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/shutdown"
)

// checkShutdown refuses periods that contradict each other, with upstream's messages.
func checkShutdown(c *kubeletconfig.KubeletConfiguration) error {
	var errs []error
	total, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	if critical > total {
		errs = append(errs, fmt.Errorf("shutdownGracePeriodCriticalPods {%v} must be <= shutdownGracePeriod {%v}",
			critical, total))
	}
	for _, p := range []struct {
		field string
		d     time.Duration
	}{{"shutdownGracePeriod", total}, {"shutdownGracePeriodCriticalPods", critical}} {
		if p.d < 0 || p.d > 0 && p.d < time.Second {
			errs = append(errs, fmt.Errorf("%s {%v} must be either zero or otherwise >= 1 sec", p.field, p.d))
		}
		if p.d != 0 && len(c.ShutdownGracePeriodByPodPriority) > 0 {
			errs = append(errs, fmt.Errorf(
				"cannot specify both shutdownGracePeriodByPodPriority and %s at the same time", p.field))
		}
	}
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		if p.ShutdownGracePeriodSeconds < 0 {
			errs = append(errs, fmt.Errorf("shutdownGracePeriodByPodPriority of priority %d has %d seconds", p.Priority,
				p.ShutdownGracePeriodSeconds))
		}
	}
	return errors.Join(errs...)
}

// shutdownPeriods returns how long pods get for their end when the node goes down.
func shutdownPeriods(c *kubeletconfig.KubeletConfiguration) []shutdown.Period {
	if len(c.ShutdownGracePeriodByPodPriority) == 0 {
		return shutdown.Periods(c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration)
	}
	var out []shutdown.Period
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		out = append(out, shutdown.Period{Priority: p.Priority,
			Grace: time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
	}
	return out
}
