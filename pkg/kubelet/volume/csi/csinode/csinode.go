// Package csinode tells the API server which storage drivers the node has: in its CSINode object and, what the node is
// to drivers and where it is, in an annotation and labels of the Node. The scheduler and who provisions and attaches
// volumes read it.
package csinode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"bonsai/pkg/kubelet/volume/csi"
)

// Client is the API server as it is needed here.
type Client interface {
	Node(ctx context.Context, name string) (*corev1.Node, error)
	PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte,
		subresource ...string) (*corev1.Node, error)
	CSINode(ctx context.Context, name string) (*storagev1.CSINode, error)
	CreateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error)
	UpdateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error)
}

// annotation says on the Node what drivers call it: a JSON object of names by driver.
const annotation = "csi.volume.kubernetes.io/nodeid"

// Announcer keeps a node's CSINode. All fields are required.
type Announcer struct {
	Client Client
	Name   string
	Log    *slog.Logger
}

var _ csi.Announcer = (*Announcer)(nil)

// Run makes the CSINode once the Node is registered, so that a node without drivers is one that is known to have none.
func (a *Announcer) Run(ctx context.Context, registered <-chan struct{}) error {
	select {
	case <-registered:
	case <-ctx.Done():
		return nil
	}
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := a.change(ctx, func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return nil }, false)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		a.Log.Warn("CSINode not made, it will be tried again", "node", a.Name, "after", pause, "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// Announce implements csi.Announcer.
func (a *Announcer) Announce(ctx context.Context, driver string, info csi.NodeInfo) error {
	if err := a.annotate(ctx, driver, info.ID, info.Topology); err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(info.Topology))
	d := storagev1.CSINodeDriver{Name: driver, NodeID: info.ID, TopologyKeys: keys,
		Allocatable: allocatable(info.MaxVolumes)}
	return a.change(ctx, func(list []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
		return append(without(list, driver), d)
	}, true)
}

// allocatable is how many volumes a node can have as its CSINode says it; nil for any number.
func allocatable(maxVolumes int64) *storagev1.VolumeNodeResources {
	if maxVolumes <= 0 {
		return nil
	}
	return &storagev1.VolumeNodeResources{Count: new(int32(min(maxVolumes, 1<<31-1)))}
}

// Limit implements csi.Announcer.
func (a *Announcer) Limit(ctx context.Context, driver string, maxVolumes int64) error {
	return a.change(ctx, func(list []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
		out := slices.Clone(list)
		for i := range out {
			if out[i].Name == driver {
				out[i].Allocatable = allocatable(maxVolumes)
			}
		}
		return out
	}, true)
}

// Withdraw implements csi.Announcer. The labels stay: other drivers may have the same.
func (a *Announcer) Withdraw(ctx context.Context, driver string) error {
	if err := a.change(ctx, func(list []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
		return without(list, driver)
	}, true); err != nil {
		return err
	}
	return a.annotate(ctx, driver, "", nil)
}

func without(list []storagev1.CSINodeDriver, driver string) []storagev1.CSINodeDriver {
	return slices.DeleteFunc(slices.Clone(list), func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// annotate says on the Node what a driver calls it, "" for a driver that is gone, and where it is.
func (a *Announcer) annotate(ctx context.Context, driver, id string, topology map[string]string) error {
	node, err := a.Client.Node(ctx, a.Name)
	if err != nil {
		return fmt.Errorf("read the Node: %w", err)
	}
	ids := map[string]string{}
	if was := node.Annotations[annotation]; was != "" {
		if err := json.Unmarshal([]byte(was), &ids); err != nil {
			return fmt.Errorf("read the annotation %s: %w", annotation, err)
		}
	}
	for key, value := range topology {
		if has, ok := node.Labels[key]; ok && has != value {
			return fmt.Errorf("detected topology value collision: driver reported %q:%q but existing label is %q:%q",
				key, value, key, has)
		}
	}
	if ids[driver] == id && (id == "" || includes(node.Labels, topology)) {
		return nil
	}
	ids[driver] = id
	if id == "" {
		delete(ids, driver)
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("encode the annotation %s: %w", annotation, err)
	}
	meta := map[string]any{"annotations": map[string]any{annotation: string(text)}, "labels": topology}
	if len(ids) == 0 {
		meta["annotations"] = map[string]any{annotation: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return fmt.Errorf("encode the patch of the Node: %w", err)
	}
	if _, err := a.Client.PatchNode(ctx, a.Name, types.StrategicMergePatchType, patch); err != nil {
		return fmt.Errorf("patch the Node: %w", err)
	}
	return nil
}

func includes(all, some map[string]string) bool {
	for k, v := range some {
		if has, ok := all[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// change makes the list of drivers what f makes of it. An object that is there is left alone unless update says
// otherwise.
func (a *Announcer) change(ctx context.Context, f func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver,
	update bool) error {
	return retry.OnError(retry.DefaultBackoff, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}, func() error {
		n, err := a.Client.CSINode(ctx, a.Name)
		if apierrors.IsNotFound(err) {
			return a.create(ctx, f(nil))
		}
		if err != nil || !update {
			return err
		}
		drivers := f(n.Spec.Drivers)
		if equality.Semantic.DeepEqual(drivers, n.Spec.Drivers) {
			return nil
		}
		out := n.DeepCopy()
		out.Spec.Drivers = drivers
		_, err = a.Client.UpdateCSINode(ctx, out)
		return err
	})
}

// create makes the CSINode, which goes with its Node.
func (a *Announcer) create(ctx context.Context, drivers []storagev1.CSINodeDriver) error {
	node, err := a.Client.Node(ctx, a.Name)
	if err != nil {
		return err
	}
	_, err = a.Client.CreateCSINode(ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: a.Name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
		Spec: storagev1.CSINodeSpec{Drivers: drivers}})
	return err
}
