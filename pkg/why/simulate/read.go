package simulate

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/workloads"
	"bonsai/pkg/why"
)

// readStorage reads what decides where volumes can be used.
func (c *Cluster) readStorage(ctx context.Context, w *why.World) {
	each(ctx, w, func(o *corev1.PersistentVolumeClaim) { c.volumes.ClaimChanged(nil, o) })
	each(ctx, w, func(o *corev1.PersistentVolume) { c.volumes.VolumeChanged(nil, o) })
	each(ctx, w, func(o *storagev1.StorageClass) { c.volumes.ClassChanged(nil, o) })
	each(ctx, w, func(o *storagev1.CSIDriver) { c.volumes.DriverChanged(nil, o) })
	each(ctx, w, func(o *storagev1.CSIStorageCapacity) { c.volumes.CapacityChanged(nil, o) })
	each(ctx, w, func(o *storagev1.VolumeAttachment) { c.volumes.AttachmentChanged(nil, o) })
	each(ctx, w, func(o *storagev1.CSINode) { c.limits[o.Name] = c.volumes.NodeChanged(nil, o) })
}

// readDevices reads the devices of nodes and the claims on them.
func (c *Cluster) readDevices(ctx context.Context, w *why.World) {
	each(ctx, w, func(o *resourcev1.DeviceClass) { c.devices.ClassChanged(nil, o) })
	each(ctx, w, func(o *resourcev1.ResourceSlice) { c.devices.SliceChanged(nil, o) })
	each(ctx, w, func(o *resourcev1.ResourceClaim) { c.devices.ClaimChanged(nil, o) })
}

func each[T any](ctx context.Context, w *why.World, do func(*T)) {
	list, _ := why.List[T](ctx, w, "", nil)
	for _, o := range list {
		do(o)
	}
}

// readWorkloads returns what spreads pods by default. Controllers are looked up one by one, when a pod asks for its
// own.
func readWorkloads(ctx context.Context, w *why.World) *workloads.Workloads {
	all := workloads.New(func(namespace string, ref *metav1.OwnerReference) labels.Selector {
		switch ref.APIVersion + " " + ref.Kind {
		case "v1 ReplicationController":
			if o, _ := why.Get[corev1.ReplicationController](ctx, w, namespace, ref.Name); o != nil &&
				o.UID == ref.UID {
				return labels.SelectorFromValidatedSet(o.Spec.Selector)
			}
		case "apps/v1 ReplicaSet":
			if o, _ := why.Get[appsv1.ReplicaSet](ctx, w, namespace, ref.Name); o != nil && o.UID == ref.UID {
				return parsed(o.Spec.Selector)
			}
		case "apps/v1 StatefulSet":
			if o, _ := why.Get[appsv1.StatefulSet](ctx, w, namespace, ref.Name); o != nil && o.UID == ref.UID {
				return parsed(o.Spec.Selector)
			}
		}
		return nil
	})
	each(ctx, w, func(o *corev1.Service) { all.ServiceChanged(nil, o) })
	return all
}

// parsed returns a selector, nil if it is not valid.
func parsed(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return selector
}
