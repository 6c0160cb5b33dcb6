package dra

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

var _ cm.Reporter = (*Manager)(nil)

// A driver's statement about a device holds for staleAfter, unless it says for how long. maxHealth bounds the devices
// of one message.
const (
	staleAfter = 30 * time.Second
	maxHealth  = 16384
)

// health is a driver's statement about a device.
type health struct {
	status  corev1.ResourceHealthStatus
	message string
	until   time.Time
}

// watchHealth follows the health of a driver's devices, if the driver reports it, until the stream ends.
//
// Its goroutine belongs to the driver's registration, and ends with it. It is KEP-4680.
func (m *Manager) watchHealth(ctx context.Context, d *driver) {
	stream, err := healthapi.NewDRAResourceHealthClient(d.conn).NodeWatchResources(ctx,
		&healthapi.NodeWatchResourcesRequest{})
	for err == nil {
		var r *healthapi.NodeWatchResourcesResponse
		if r, err = stream.Recv(); err == nil {
			m.heard(d, r.GetDevices())
		}
	}
	m.heard(d, nil) // nothing more is known; most drivers tell nothing at all
}

// heard takes all that a driver says, and wakes the pods that have devices of it.
//
// A message replaces the one before it as a whole. Pods are woken after the lock is free, as Wake may take others.
func (m *Manager) heard(d *driver, list []*healthapi.DeviceHealth) {
	now, known := m.cfg.Now(), map[string]health{}
	for _, h := range list[:min(len(list), maxHealth)] {
		s := health{status: corev1.ResourceHealthStatusUnknown, message: shorten(h.GetMessage()),
			until: now.Add(staleAfter)}
		switch h.GetHealth() {
		case healthapi.HealthStatus_HEALTHY:
			s.status = corev1.ResourceHealthStatusHealthy
		case healthapi.HealthStatus_UNHEALTHY:
			s.status = corev1.ResourceHealthStatusUnhealthy
		}
		if t := h.GetHealthCheckTimeoutSeconds(); t > 0 {
			s.until = now.Add(time.Duration(min(t, int64(24*time.Hour/time.Second))) * time.Second)
		}
		known[h.GetDevice().GetPoolName()+"/"+h.GetDevice().GetDeviceName()] = s
	}
	m.mu.Lock()
	quiet := len(known) == 0 && len(d.health) == 0
	d.health = known
	var woken []types.UID
	for _, c := range m.claims {
		if _, of := c.devices[d.name]; of && !quiet {
			for uid := range c.pods {
				woken = append(woken, uid)
			}
		}
	}
	m.mu.Unlock()
	for _, uid := range woken {
		m.cfg.Wake(uid)
	}
}

// shorten bounds a message as the API does. It leaves no half character, which the API server would refuse.
func shorten(s string) string {
	if len(s) > corev1.ResourceHealthMessageMaxLength {
		return strings.ToValidUTF8(s[:corev1.ResourceHealthMessageMaxLength-3], "") + "..."
	}
	return s
}

// Health implements cm.Reporter: the devices of each request of a claim that a container uses.
func (m *Manager) Health(pod *corev1.Pod) map[string][]corev1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ofPod(pod.UID)) == 0 {
		return nil
	}
	out := map[string][]corev1.ResourceStatus{}
	for c := range runtime.Containers(pod) {
		for _, u := range uses(pod, c) {
			e := m.named(pod, u.claim)
			if e == nil {
				continue
			}
			name := "claim:" + u.entry
			if u.request != "" {
				name += "/" + u.request
			}
			s := corev1.ResourceStatus{Name: corev1.ResourceName(name)}
			for _, driver := range sortedKeys(e.devices) {
				for _, d := range e.devices[driver] {
					if d.isFor(u.request) {
						s.Resources = append(s.Resources, m.healthOf(driver, d))
					}
				}
			}
			if len(s.Resources) > 0 {
				out[c.Name] = append(out[c.Name], s)
			}
		}
	}
	return out
}

// healthOf is what is known of a device; m is locked.
func (m *Manager) healthOf(name string, d device) corev1.ResourceHealth {
	out := corev1.ResourceHealth{ResourceID: corev1.ResourceID(name + "/" + d.pool + "/" + d.name),
		Health: corev1.ResourceHealthStatusUnknown}
	for _, r := range m.drivers[name] {
		if h, known := r.health[d.pool+"/"+d.name]; known && m.cfg.Now().Before(h.until) {
			if out.Health = h.status; h.message != "" {
				out.Message = &h.message
			}
		}
	}
	return out
}
