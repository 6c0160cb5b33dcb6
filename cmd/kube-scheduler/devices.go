package main

import (
	"log/slog"

	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/devices"
)

// deviceMirrors are the devices that nodes offer, and the claims on them.
type deviceMirrors struct {
	slices  *apiclient.Mirror[*resourcev1.ResourceSlice]
	classes *apiclient.Mirror[*resourcev1.DeviceClass]
	claims  *apiclient.Mirror[*resourcev1.ResourceClaim]
}

func newDeviceMirrors(c *apiclient.Client, log *slog.Logger) *deviceMirrors {
	m := &deviceMirrors{
		slices:  apiclient.NewMirror(resource.ResourceSlices(c), all(), log),
		classes: apiclient.NewMirror(resource.DeviceClasses(c), all(), log),
		claims:  apiclient.NewMirror(resource.ResourceClaims(c), all(), log),
	}
	m.slices.Slim, m.classes.Slim, m.claims.Slim = devices.SlimSlice, devices.SlimClass, devices.SlimClaim
	// Servers before v1.34 do not serve these kinds by default.
	m.slices.Optional, m.classes.Optional, m.claims.Optional = true, true, true
	return m
}

func (m *deviceMirrors) feed(s *scheduler.Scheduler) {
	m.slices.Changed, m.classes.Changed = s.ResourceSliceChanged, s.DeviceClassChanged
	m.claims.Changed = s.ResourceClaimChanged
}

func (m *deviceMirrors) all() []mirror { return []mirror{m.slices, m.classes, m.claims} }
