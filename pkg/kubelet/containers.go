package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/durable"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/images/credentialprovider"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/pleg"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
)

// dialTimeout bounds how long the container runtime may take to answer when the kubelet starts. A kubelet that cannot
// reach it by then ends, and whoever started it tries again.
const dialTimeout = time.Minute

// containers are what pods consist of on this node: the runtime, its images, and cgroups.
// Everything here outlives a pod. What is made for one pod is in the packages of podParts.
type containers struct {
	// It is shared by all goroutines of the kubelet.
	cri     *cri.Client
	cgroups *cgroup.Manager
	// cpus decides which pods' cgroups have no quota.
	cpus   *cpu.Manager
	images *images.Manager
	// unused removes images, dead removes containers.
	unused *images.Collector
	dead   housekeeping.Containers
	// relist finds changes in the runtime, by its events and by listing.
	relist *pleg.Generator
}

// newContainers connects to the runtime. After an error the connection is closed again.
func newContainers(ctx context.Context, cfg *Config, r reporting, s signals) (_ *containers, err error) {
	c := &containers{}
	if c.cri, err = dial(ctx, cfg, r); err != nil {
		return nil, err
	}
	// The connection is the only thing here that has to be closed.
	defer func() {
		if err != nil {
			err = errors.Join(err, c.cri.Close())
		}
	}()
	if c.cpus, err = cpu.New(cpu.Config{Settings: cfg.CPUs, RootDir: cfg.RootDir, Machine: cfg.Machine, Runtime: c.cri,
		Pods: s.active, Metrics: r.metrics, Log: cfg.Log}); err != nil {
		return nil, err
	}
	if c.cgroups, err = newCgroups(ctx, cfg, r, c); err != nil {
		return nil, err
	}
	if c.images, err = newImages(cfg, r, c.cri); err != nil {
		return nil, err
	}
	c.unused = &images.Collector{Policy: cfg.ImageGC, Node: c.cri, Manager: c.images, Pods: s.pods.Pods,
		Removed: func(why images.Reason) { r.metrics.ImageRemoved(string(why)) }, Now: time.Now, Log: cfg.Log}
	c.dead = housekeeping.Containers{Runtime: c.cri, Policy: cfg.ContainerGC, Ended: s.workers.Ended, Now: time.Now,
		RemoveLog: func(p *runtime.PodStatus, x *runtime.Container) error { return cfg.Logs.Remove(logs.Of(p, x)) }}
	c.relist = pleg.New(pleg.Config{Runtime: c.cri, Observe: r.metrics.Relisted, Unsupported: cri.ErrNoEvents,
		Log: cfg.Log})
	return c, nil
}

// dial waits for the runtime for at most dialTimeout: on most nodes it starts at the same time as the kubelet.
func dial(ctx context.Context, cfg *Config, r reporting) (*cri.Client, error) {
	version, err := cgroup.Version()
	if err != nil {
		return nil, fmt.Errorf("prepare cgroups: %w", err)
	}
	to, podsDir := cfg.Runtime, cfg.podsDir()
	to.CgroupV2 = version == 2
	to.Observe = r.metrics.Called
	// The runtime reports mounts by their paths on the host, and only the volumes' layout tells which of them is the
	// termination log.
	to.TerminationLog = func(uid types.UID, container, path string) bool {
		return volume.IsTerminationLog(podsDir, uid, container, path)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return cri.Dial(ctx, to)
}

// newCgroups returns the manager of cgroups with the runtime's driver: with another one, the runtime would not find the
// cgroups of pods. A runtime that does not tell its driver has the one of the configuration (KEP-4033).
func newCgroups(ctx context.Context, cfg *Config, r reporting, c *containers) (*cgroup.Manager, error) {
	groups := cfg.Cgroups
	groups.Observe, groups.NoQuota = r.metrics.CgroupWork, c.cpus.NoQuota
	groups.Protected = r.metrics.MemoryProtected
	driver, err := c.cri.CgroupDriver(ctx)
	if err != nil {
		return nil, err
	}
	if driver != "" && driver != groups.Driver {
		cfg.Log.Info("the container runtime's cgroup driver is used, not that of cgroupDriver", "driver", driver,
			"cgroupDriver", groups.Driver)
		groups.Driver = driver
	}
	m, err := cgroup.New(groups)
	if err != nil {
		return nil, fmt.Errorf("prepare cgroups: %w", err)
	}
	return m, nil
}

// newImages returns the manager of images. Its records survive a restart: they say with whose credentials an image was
// pulled, and so who may use it without a pull of their own.
func newImages(cfg *Config, r reporting, service *cri.Client) (*images.Manager, error) {
	x := cfg.Images
	x.Service, x.Account, x.Pulled = service, cfg.Client.ServiceAccount, r.metrics.ImagePulled
	x.Ensured = func(q images.Request) { r.metrics.ImageEnsured(q.Policy, q.Present, q.Pull) }
	x.Checked = func(c images.Check) { r.metrics.ImageChecked(string(c)) }
	x.Flush = func(ctx context.Context) error {
		where, err := service.Filesystems(ctx)
		if err != nil {
			return err
		}
		return durable.Flush(where.Images)
	}
	var err error
	if x.Records, err = images.OpenRecords(filepath.Join(cfg.RootDir, "image_manager"), time.Now); err != nil {
		return nil, err
	}
	if cfg.Metrics != nil {
		countRecords(cfg.Metrics, x.Records)
	}
	// Without providers no program is started for a pull.
	if len(cfg.CredentialProviders) > 0 {
		x.Providers, err = credentialprovider.New(credentialprovider.Config{Providers: cfg.CredentialProviders,
			BinDir:   cfg.CredentialProviderDir,
			Accounts: cfg.Client, Metrics: credentialprovider.NewMetrics(cfg.Metrics), Now: time.Now, Log: cfg.Log})
		if err != nil {
			return nil, err
		}
	}
	return images.New(x), nil
}
