package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/host"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/stats"
)

// servingParts are the sources of the kubelet's HTTPS API. They only read; the handlers are in package server.
type servingParts struct {
	host  host.Host
	stats *stats.Collector
	// cadvisor serves /metrics/cadvisor, probes /metrics/probes.
	cadvisor, probes http.Handler
}

func newServingParts(cfg *Config, r reporting, s signals, c *containers, v *volumeParts,
	p *podParts) (*servingParts, error) {
	x := &servingParts{probes: promhttp.HandlerFor(r.probes, promhttp.HandlerOpts{})}
	x.host = host.Host{Runtime: c.cri, Checkpoints: filepath.Join(cfg.RootDir, "checkpoints"), Now: time.Now,
		LogPath: cfg.Logs.Path, ReadLog: nodeLogs{logs.NewReaders()}.read}
	var err error
	if x.stats, err = newStats(cfg, s, usage{cgroups: c.cgroups, cri: c.cri, volumes: v.manager,
		local: localstorage.NewRecent(p.storage, time.Now), log: cfg.Log}); err != nil {
		return nil, err
	}
	m := monitor{cgroups: c.cgroups, pods: s.pods, node: cfg.Node.Machine, rootDir: cfg.RootDir, log: cfg.Log}
	if x.cadvisor, err = m.handler(); err != nil {
		return nil, fmt.Errorf("prepare /metrics/cadvisor: %w", err)
	}
	return x, nil
}

// nodeLogs adapts logs.Readers to the API's options. A relative time (sinceSeconds) is resolved when the request comes.
type nodeLogs struct{ readers *logs.Readers }

func (l nodeLogs) read(ctx context.Context, path string, o *corev1.PodLogOptions,
	running func(context.Context) (bool, error), stdout, stderr io.Writer) error {
	return l.readers.Read(ctx, path, logs.OptionsOf(o, time.Now()), running, stdout, stderr)
}
