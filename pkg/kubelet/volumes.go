package kubelet

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/podcertificates"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/claims"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csinode"
	"bonsai/pkg/kubelet/volume/emptydir"
	"bonsai/pkg/kubelet/volume/growth"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/image"
	"bonsai/pkg/kubelet/volume/local"
	"bonsai/pkg/kubelet/volume/nfs"
	"bonsai/pkg/kubelet/volume/projected"
)

// volumeParts are the pods' volumes, and the objects that fill them.
type volumeParts struct {
	// objects are the ConfigMaps, Secrets and ClusterTrustBundles that pods refer to.
	objects *objects.Cache
	// certificates are what signers issued for volumes.
	certificates *podcertificates.Manager
	manager      *volume.Manager
	// csi are the volumes of storage drivers, drivers the node's drivers, csiNode announces these in the CSINode.
	csi     *csi.Source
	drivers *csi.Drivers
	csiNode *csinode.Announcer
}

// newVolumeParts constructs the volumes. The CSI drivers announce themselves in the CSINode, and a volume that is in
// use must be shown in the Node's status before it is mounted (ShowInUse): otherwise it could be detached meanwhile.
func newVolumeParts(cfg *Config, r reporting, n *node.Node) (*volumeParts, error) {
	v := &volumeParts{csiNode: &csinode.Announcer{Client: cfg.Client, Name: cfg.NodeName, Log: cfg.Log}}
	// A driver that registers must be in the CSINode before the scheduler can count its volumes.
	v.drivers = csi.NewDrivers(v.csiNode, cfg.Client, cfg.Log)
	v.csi = csi.New(csi.Config{Records: cfg.csiRecords(), Node: cfg.NodeName, Client: cfg.Client, Drivers: v.drivers,
		ShowInUse: n.ShowInUse})
	var err error
	if v.objects, err = objects.New(objects.Config{Client: cfg.Client, Log: cfg.Log}); err != nil {
		return nil, fmt.Errorf("prepare the cache of configMaps, secrets and trust bundles: %w", err)
	}
	v.certificates, err = podcertificates.New(podcertificates.Config{Client: cfg.Client, Now: time.Now,
		Random: rand.Float64, Event: r.events.Pod, Log: cfg.Log, Node: func() (types.NodeName, types.UID) {
			return types.NodeName(cfg.NodeName), n.UID()
		}})
	if err != nil {
		return nil, fmt.Errorf("prepare the certificates of pods: %w", err)
	}
	api := projected.Config{Objects: v.objects, Tokens: cfg.Client, Certificates: v.certificates, Field: env.Field,
		Now: time.Now, Log: cfg.Log,
		// Asked at each use, because the node's capacity can change.
		Allocatable: func() int64 {
			all := n.Allocatable()
			return all.Memory().Value()
		},
		Resource: func(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector) (string, error) {
			return env.ResourceOf(pod, container, sel, n.Allocatable())
		}}
	disks := local.Config{Dir: cfg.pluginDir("local-volume", "mounts"), PodsDir: cfg.podsDir(),
		Mounts: mount.NewSafeFormatAndMount(mount.New(""), utilexec.New())}
	sources, err := volumeSources(api, disks, v.csi)
	if err != nil {
		return nil, err
	}
	v.manager, err = volume.New(volume.Config{PodsDir: cfg.podsDir(), Sources: sources, Log: cfg.Log,
		Metrics: r.metrics,
		Claims:  &claims.Resolver{Client: cfg.Client, Node: n.Object},
		Growth: growth.New(growth.Config{Client: cfg.Client, Node: cfg.NodeName, Event: r.events.Pod,
			ClaimEvent: r.events.Claim, Now: time.Now})})
	if err != nil {
		return nil, fmt.Errorf("prepare volumes: %w", err)
	}
	return v, nil
}

// volumeSources lists all kinds of volumes: api fills volumes from the API, disks finds local volumes, and drivers has
// those of storage drivers. A volume belongs to the first source that supports it; their contract is that only one
// does.
func volumeSources(api projected.Config, disks local.Config, drivers *csi.Source) ([]volume.Source, error) {
	list := []volume.Source{emptydir.New(api.Allocatable), hostpath.New(), image.New(), local.New(disks),
		nfs.New(disks.Mounts), drivers}
	files, err := projected.New(api)
	for _, s := range files {
		list = append(list, s)
	}
	return list, err
}

// changed returns the function that runs when an object has changed that these pods refer to. Their volumes are marked
// first and their workers woken second, so that the next sync already rewrites the volumes. It is called on the
// goroutine that watches objects and only sets marks.
func (v *volumeParts) changed(s signals) func(pods []types.UID) {
	return func(pods []types.UID) {
		v.manager.Changed(pods)
		for _, uid := range pods {
			s.workers.Wake(uid)
		}
	}
}
