package main

import (
	"log/slog"

	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/devices"
)

// deviceInformers are the devices that nodes offer, and the claims on them.
type deviceInformers struct {
	slices  *apiclient.Informer[*resourcev1.ResourceSlice]
	classes *apiclient.Informer[*resourcev1.DeviceClass]
	claims  *apiclient.Informer[*resourcev1.ResourceClaim]
	rules   *apiclient.Informer[*resourcev1.DeviceTaintRule]
}

func newDeviceInformers(c *apiclient.Client, log *slog.Logger) *deviceInformers {
	m := &deviceInformers{
		slices:  apiclient.NewInformer(resource.ResourceSlices(c), all(), log),
		classes: apiclient.NewInformer(resource.DeviceClasses(c), all(), log),
		claims:  apiclient.NewInformer(resource.ResourceClaims(c), all(), log),
		rules:   apiclient.NewInformer(resource.DeviceTaintRules(c), all(), log),
	}
	m.slices.Slim, m.classes.Slim, m.claims.Slim = devices.SlimSlice, devices.SlimClass, devices.SlimClaim
	m.rules.Slim = devices.SlimRule
	// Servers before v1.34 do not serve these kinds by default, nor the rules before v1.37.
	m.slices.Optional, m.classes.Optional, m.claims.Optional, m.rules.Optional = true, true, true, true
	return m
}

// feed makes the changes reach the scheduler; it is called before the informers run.
func (m *deviceInformers) feed(s *scheduler.Scheduler) {
	m.slices.Changed, m.classes.Changed = s.ResourceSliceChanged, s.DeviceClassChanged
	m.claims.Changed, m.rules.Changed = s.ResourceClaimChanged, s.DeviceTaintRuleChanged
}

func (m *deviceInformers) all() []informer { return []informer{m.slices, m.classes, m.claims, m.rules} }
