// Package kubelet is the node's agent. The work is done by the packages below it, each with its own data; this one
// constructs them and runs them. Start at New for the parts and how they are tied together, at newRunners for what
// runs, at podsyncer.Sync for the life of a pod.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/events"
	"bonsai/pkg/kubelet/server"
)

// Kubelet runs the pods of one node. Its parts are complete when New returns; nothing is set later.
//
// The parts are groups by topic. Each has its own locks, and nothing here has one: the fields are only read after New.
type Kubelet struct {
	cfg        Config
	reporting  reporting
	signals    signals
	containers *containers
	node       *nodeParts
	pods       *podParts
	serving    *servingParts
	runners    []runner
}

// New connects to the runtime and constructs the parts; nothing runs yet. Each part gets parts that are made before it:
// what ties the parts together (signals) comes first. Probes live as long as ctx. The caller closes the Kubelet.
func New(ctx context.Context, cfg Config) (_ *Kubelet, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := newReporting(&cfg)
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	s := newSignals(&cfg, r)
	c, err := newContainers(ctx, &cfg, r, s)
	if err != nil {
		return nil, err
	}
	k, err := assemble(ctx, cfg, r, s, c)
	if err != nil {
		return nil, errors.Join(err, c.cri.Close())
	}
	return k, nil
}

// Close ends what New started: the connection to the runtime, and the queues of statuses and events. It is called once,
// whether or not Run was, and after Run has returned: until then the loops use all of them.
func (k *Kubelet) Close() error {
	k.reporting.close()
	return k.containers.cri.Close()
}

// assemble constructs what works with the runtime, each part from the ones before: the node and its resources, volumes,
// pods, and what the kubelet's API shows. Metrics are registered last, because their collectors read all of these.
func assemble(ctx context.Context, cfg Config, r reporting, s signals, c *containers) (*Kubelet, error) {
	n, err := newNodeParts(&cfg, r, s, c)
	if err != nil {
		return nil, err
	}
	r.events.FindNode(n.node.UID)
	v, err := newVolumeParts(&cfg, r, n.node)
	if err != nil {
		return nil, err
	}
	p, err := newPodParts(ctx, &cfg, r, s, c, n, v)
	if err != nil {
		return nil, err
	}
	shown, err := newServingParts(&cfg, r, s, c, v, p)
	if err != nil {
		return nil, err
	}
	if cfg.Metrics != nil {
		countPods(cfg.Metrics, cfg.NodeName, c.cgroups.Version(), s)
		cfg.Metrics.MustRegister(newVolumeMetrics(v.manager), newWorkingPods(s.workers.Count))
	}
	return &Kubelet{cfg: cfg, reporting: r, signals: s, containers: c, node: n, pods: p, serving: shown,
		runners: newRunners(&cfg, r, s, c, n, v, p)}, nil
}

// Run does the node's work until ctx ends; pods go on running after it. It makes the cgroups and starts the runners in
// order. At the end it waits for the runners, then for the probes; then the last events are sent.
func (k *Kubelet) Run(ctx context.Context) error {
	if err := k.containers.cgroups.Setup(ctx); err != nil {
		return fmt.Errorf("make the cgroups of pods: %w", err)
	}
	sink := k.cfg.Client.Events(ctx)
	if k.cfg.EventLimiter != nil {
		sink = events.Limited(ctx, sink, k.cfg.EventLimiter)
	}
	defer k.reporting.events.Start(sink)()
	defer k.pods.probes.Wait()
	return runAll(ctx, k.runners)
}

// Server returns the server of the kubelet's HTTPS API. It completes cfg with what the API shows of the node. The
// server is made before Run starts and runs beside it. Its requests may come before the first pod is known; they then
// show no pods.
func (k *Kubelet) Server(cfg server.Config) (*server.Server, error) {
	cfg.NodeName, cfg.Log, cfg.Healthy = k.cfg.NodeName, k.cfg.Log, k.Healthy
	cfg.Pods, cfg.Runtime, cfg.Logs, cfg.Stats = k.signals.pods, k.serving.host, k.serving.host, k.serving.stats.Summary
	cfg.Cadvisor, cfg.Probes = k.serving.cadvisor, k.serving.probes
	return server.New(cfg)
}

// Healthy returns nil while the container runtime lists its pods. /healthz and the Node's Ready condition use it: a
// kubelet that cannot see its containers cannot keep pods running, whatever else works.
func (k *Kubelet) Healthy() error { return k.containers.relist.Healthy(time.Now()) }

// Addresses returns the node's addresses as the API shows them.
func (k *Kubelet) Addresses() []corev1.NodeAddress { return k.node.node.Addresses() }

// NodeIPs returns the node's addresses, the primary one first.
func (k *Kubelet) NodeIPs() []string { return k.node.node.HostIPs() }
