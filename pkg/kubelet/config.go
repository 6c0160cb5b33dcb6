package kubelet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/flowcontrol"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/shutdown"
	"bonsai/pkg/kubelet/sysctl"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/trace"
)

// Config is what a Kubelet needs. Every field is required unless its comment says otherwise. New completes the parts
// that need other parts, such as Node, Images and Runtime: callers leave their functions empty. cmd/kubelet makes it
// from its flags and its configuration file, and has checked the values; complete looks only for what would crash.
type Config struct {
	NodeName string
	Client   *kubeclient.Client
	// RootDir is the kubelet's directory.
	RootDir string
	// Logs is where the containers' logs are. A log grows to LogMaxSize bytes, and a container keeps LogMaxFiles logs.
	// Their sizes are checked every LogPeriod, 10 s by default.
	Logs        logs.Files
	LogMaxSize  int64
	LogMaxFiles int
	LogPeriod   time.Duration
	// StaticPodPath is a directory of manifests, or one file; empty: there is none. It is read again every
	// StaticPeriod.
	StaticPodPath string
	StaticPeriod  time.Duration
	// StaticPodURL has manifests of static pods, too; nil: there is none. It is asked, with StaticPodURLHeader, every
	// StaticURLPeriod.
	StaticPodURL       *url.URL
	StaticPodURLHeader http.Header
	StaticURLPeriod    time.Duration
	Runtime            cri.Config
	Cgroups            cgroup.Config
	Images             images.Config
	ImageGC            images.Policy
	ContainerGC        housekeeping.ContainerPolicy
	// EventLimiter bounds how fast events are sent; nil: they are sent as they come.
	EventLimiter flowcontrol.RateLimiter
	// CredentialProviders are the programs, in CredentialProviderDir, that supply credentials for images; optional.
	CredentialProviders   []kubeletconfigv1.CredentialProvider
	CredentialProviderDir string
	// Shutdown is how long pods may take to end when the node goes down, by priority; empty: the machine does not wait
	// for them, and they end with it.
	Shutdown []shutdown.Period
	Eviction pressure.Policy
	DNS      dns.Config
	// Node is completed with the client, the runtime and the images.
	Node node.Config
	// MaxBackOff is the longest delay between restarts of a crashing container; 0: 5 min.
	MaxBackOff time.Duration
	// Machine is the CPUs and NUMA nodes. The nodes and distances of Topology follow from it. Topology, CPUs and Memory
	// are how pods get them.
	Machine  cm.Machine
	Topology cm.Topology
	CPUs     cpu.Settings
	Memory   memory.Settings
	// Users are the node's user and group ids for pods that have user namespaces.
	Users userns.Ranges
	// Sysctls are the kernel parameters that pods may set.
	Sysctls *sysctl.Allowed
	// AppArmor: the node can confine containers by AppArmor.
	AppArmor bool
	// Metrics gets the kubelet's own metrics; nil: none are kept.
	Metrics prometheus.Registerer
	// Tracer records the steps of pods; nil: nothing is recorded.
	Tracer *trace.Tracer
	Log    *slog.Logger
}

// complete checks the configuration and makes RootDir absolute: drivers and plug-ins get paths below it. A relative
// path would change its meaning in another process, such as a CSI driver.
func (c *Config) complete() error {
	if c.NodeName == "" || c.Client == nil || c.Log == nil || c.Sysctls == nil {
		return errors.New("kubelet: NodeName, Client, Sysctls and Log are required")
	}
	var err error
	if c.RootDir, err = filepath.Abs(c.RootDir); err != nil {
		return fmt.Errorf("find the kubelet's directory: %w", err)
	}
	return nil
}

// podsDir is the directory of all pods' directories. Its layout (pods/UID/volumes/…) is upstream's, because CSI drivers
// and plug-ins rely on the paths.
func (c *Config) podsDir() string { return filepath.Join(c.RootDir, "pods") }

// pluginDir is the directory of one of the kubelet's own volume plug-ins.
func (c *Config) pluginDir(elem ...string) string {
	return filepath.Join(append([]string{c.RootDir, "plugins", "kubernetes.io"}, elem...)...)
}

// csiRecords are the volumes of storage drivers on the disk.
func (c *Config) csiRecords() csi.Records {
	return csi.Records{Dir: c.pluginDir("csi"), PodsDir: c.podsDir()}
}
