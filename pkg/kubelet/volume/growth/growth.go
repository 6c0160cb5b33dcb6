// Package growth makes the file systems of volumes as large as their PersistentVolumes have become, and shows that in
// the claims' status. The storage's own resizer makes the disk itself larger; the node's part is the file system on it,
// before a pod starts or while pods use it.
//
// The rules: https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1790-recover-resize-failure.
package growth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/volume"
)

// Client reads claims and volumes, and writes how far claims have grown. A node may do so for those of its own pods.
type Client interface {
	PersistentVolumeClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	PatchClaimStatus(ctx context.Context, namespace, name string, patch []byte) error
}

// Config is what a Grower needs; everything is required.
type Config struct {
	Client Client
	// Node is the node's name.
	Node string
	// Event and ClaimEvent tell users of a pod and of its claim.
	Event      func(pod *corev1.Pod, kind, reason, message string)
	ClaimEvent func(claim *corev1.PersistentVolumeClaim, kind, reason, message string)
	Now        func() time.Time
}

// Grower implements volume.Grower.
type Grower struct {
	cfg Config

	mu sync.Mutex
	// sizes are how large the node's volumes are, by the PersistentVolume's name. A claim says it, too, but of all
	// nodes: one that is used on several has grown when the first of them is done.
	sizes map[string]resource.Quantity
}

var _ volume.Grower = (*Grower)(nil)

// New returns a Grower that knows of no volume.
func New(cfg Config) *Grower { return &Grower{cfg: cfg, sizes: map[string]resource.Quantity{}} }

// Reasons of events.
const (
	reasonDone   = "FileSystemResizeSuccessful"
	reasonFailed = "FileSystemResizeFailed"
)

// Grow implements volume.Grower.
func (g *Grower) Grow(ctx context.Context, r volume.Request, e volume.Expander) error {
	claim, pv := r.Claim, r.PV
	if r.Renew {
		var err error
		if claim, err = g.cfg.Client.PersistentVolumeClaim(ctx, claim.Namespace, claim.Name); err != nil {
			return fmt.Errorf("read how large the claim is: %w", err)
		}
		if pv, err = g.cfg.Client.PersistentVolume(ctx, pv.Name); err != nil {
			return fmt.Errorf("read how large the volume is: %w", err)
		}
	}
	to, due := isDue(claim, pv, g.size(claim, pv))
	if !due {
		return nil
	}
	if r.ReadOnly {
		g.event(r, corev1.EventTypeWarning, reasonFailed,
			"MountVolume.NodeExpandVolume failed: requested read-only file system")
		return nil
	}
	claim, err := g.tell(ctx, claim, begun(claim, to))
	if err != nil {
		return err
	}
	r.PV = pv
	got, err := e.Expand(ctx, r, to)
	if err != nil {
		return g.failed(ctx, r, claim, to, err)
	}
	g.mu.Lock()
	g.sizes[pv.Name] = got
	g.mu.Unlock()
	if _, err := g.tell(ctx, claim, finished(claim, got)); err != nil {
		return err
	}
	g.event(r, corev1.EventTypeNormal, reasonDone,
		fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q %s", pv.Name, g.cfg.Node))
	return nil
}

// event tells the users of the pod and of its claim.
func (g *Grower) event(r volume.Request, kind, reason, message string) {
	g.cfg.Event(r.Pod, kind, reason, message)
	g.cfg.ClaimEvent(r.Claim, kind, reason, message)
}

// size is how large the node's volume is: as it is remembered, or as the claim says when the node first has the volume.
func (g *Grower) size(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) resource.Quantity {
	g.mu.Lock()
	defer g.mu.Unlock()
	if has, known := g.sizes[pv.Name]; known {
		return has
	}
	g.sizes[pv.Name] = claim.Status.Capacity[corev1.ResourceStorage]
	return g.sizes[pv.Name]
}

// Forget implements volume.Grower.
func (g *Grower) Forget(pv string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sizes, pv)
}

// failed shows what went wrong. A volume that cannot grow does not keep a pod from starting with its present size.
func (g *Grower) failed(ctx context.Context, r volume.Request, claim *corev1.PersistentVolumeClaim,
	to resource.Quantity, err error) error {
	g.event(r, corev1.EventTypeWarning, reasonFailed,
		fmt.Sprintf("MountVolume.NodeExpandVolume failed for volume %q : %v", r.PV.Name, err))
	why, known := errors.AsType[*volume.ExpandError](err)
	if !known { // it may have been done all the same, and is tried again
		return err
	}
	if _, told := g.tell(ctx, claim, failed(claim, to, why, metav1.NewTime(g.cfg.Now()))); told != nil {
		return told
	}
	if why.Infeasible {
		return nil
	}
	return err
}

// tell writes a claim's status and returns what it is then.
func (g *Grower) tell(ctx context.Context, was, is *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim,
	error) {
	patch, err := patchOf(was, is)
	if err != nil || patch == nil {
		return is, err
	}
	if err := g.cfg.Client.PatchClaimStatus(ctx, was.Namespace, was.Name, patch); err != nil {
		return nil, fmt.Errorf("tell how far the claim has grown: %w", err)
	}
	return is, nil
}

// resizing are the conditions that have to do with growing.
func resizing(c corev1.PersistentVolumeClaimCondition) bool {
	return slices.Contains([]corev1.PersistentVolumeClaimConditionType{corev1.PersistentVolumeClaimResizing,
		corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError}, c.Type)
}
