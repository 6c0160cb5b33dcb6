package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/emptydir"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/image"
	"bonsai/pkg/kubelet/volume/projected"
)

func (k *Kubelet) composeVolumes() error {
	var err error
	k.objects, err = objects.New(objects.Config{Client: k.cfg.Client, Log: k.log, Changed: func(uids []types.UID) {
		k.volumes.Changed(uids)
		for _, uid := range uids {
			k.workers.Wake(uid)
		}
	}})
	if err != nil {
		return fmt.Errorf("prepare the cache of configMaps and secrets: %w", err)
	}
	sources, err := volumeSources(projected.Config{Objects: k.objects, Tokens: k.cfg.Client, Field: env.Field, Resource: k.resourceField, Now: time.Now, Log: k.log})
	if err != nil {
		return err
	}
	k.volumes, err = volume.New(volume.Config{PodsDir: filepath.Join(k.cfg.RootDir, "pods"), Sources: sources, Log: k.log})
	if err != nil {
		return fmt.Errorf("prepare volumes: %w", err)
	}
	return nil
}

// volumeSources is the list of all kinds of volumes.
func volumeSources(api projected.Config) ([]volume.Source, error) {
	list := []volume.Source{emptydir.New(), hostpath.New(), image.New()}
	files, err := projected.New(api)
	for _, s := range files {
		list = append(list, s)
	}
	return list, err
}

func (k *Kubelet) resourceField(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector) (string, error) {
	c := env.FindContainer(pod, container)
	if c == nil {
		return "", fmt.Errorf("container %q not found", container)
	}
	return env.Resource(c, sel, k.node.Allocatable())
}

// newExecutor composes what carries out the plans.
func (k *Kubelet) newExecutor() (*executor.Executor, error) {
	return executor.New(executor.Config{Runtime: k.cri, Images: k.images, Volumes: k.volumes, Cgroups: k.cgroups, Node: k.node, Events: k.events,
		Metrics: k.metrics, Environment: k.environment, Secret: k.objects.Secret, Message: cri.Message, DNS: k.cfg.DNS, Logs: k.cfg.Logs,
		Capacity: k.capacity, MaxBackOff: k.cfg.MaxBackOff, Log: k.log})
}

// nodeImages are the images that the node's status chooses from.
func (k *Kubelet) nodeImages(ctx context.Context) ([]corev1.ContainerImage, error) {
	list, err := k.cri.Images(ctx)
	return named(list), err
}

// named are all images that have a name.
func named(list []runtime.Image) []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, i := range list {
		if names := slices.Concat(i.RepoDigests, i.RepoTags); len(names) > 0 {
			out = append(out, corev1.ContainerImage{Names: names, SizeBytes: int64(i.Size)})
		}
	}
	return out
}

// newServices caches what the environment needs of services.
func newServices(services cache.ListerWatcher) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(services, &corev1.Service{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	err := informer.SetTransform(func(obj any) (any, error) {
		if s, ok := obj.(*corev1.Service); ok {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, ResourceVersion: s.ResourceVersion},
				Spec: corev1.ServiceSpec{ClusterIP: s.Spec.ClusterIP, Ports: s.Spec.Ports}}, nil
		}
		return obj, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch services: %w", err)
	}
	return informer, nil
}

// probeExec runs a probe's command.
func (k *Kubelet) probeExec(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, int, error) {
	r, err := k.cri.ExecSync(ctx, id, cmd, timeout)
	return append(r.Stdout, r.Stderr...), int(r.ExitCode), err
}
