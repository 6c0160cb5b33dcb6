package kubelet

import (
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cm/devices"
	"bonsai/pkg/kubelet/cm/dra"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/cm/podresources"
	"bonsai/pkg/kubelet/cm/userns"
)

// composeResources makes what pods are given of the node.
func (k *Kubelet) composeResources() error {
	root, err := filepath.Abs(k.cfg.RootDir)
	if err != nil {
		return fmt.Errorf("find the kubelet's directory: %w", err)
	}
	if k.devices, err = devices.New(devices.Config{RootDir: root, Nodes: k.cfg.Machine.Nodes(), Changed: k.nodeChanged.Notify, Wake: func(uid types.UID) { k.workers.Wake(uid) },
		Metrics: k.metrics, Now: time.Now, Log: k.cfg.Log}); err != nil {
		return err
	}
	if k.dra, err = dra.New(dra.Config{RootDir: root, Node: k.cfg.NodeName, Client: k.cfg.Client, Wake: func(uid types.UID) { k.workers.Wake(uid) },
		Metrics: k.metrics, Now: time.Now, Log: k.cfg.Log}); err != nil {
		return err
	}
	if k.cpu, err = cpu.New(cpu.Config{Settings: k.cfg.CPUs, RootDir: root, Machine: k.cfg.Machine, Runtime: k.cri, Pods: k.active, Metrics: k.metrics, Log: k.cfg.Log}); err != nil {
		return err
	}
	memories, err := memory.New(memory.Config{Settings: k.cfg.Memory, RootDir: root, Machine: k.cfg.Machine, Metrics: k.metrics, Log: k.cfg.Log})
	if err != nil {
		return err
	}
	users, err := userns.New(userns.Config{PodsDir: filepath.Join(root, "pods"), Ranges: k.cfg.Users})
	if err != nil {
		return err
	}
	topology := k.cfg.Topology
	topology.Nodes, topology.Distances = k.cfg.Machine.Nodes(), k.cfg.Machine.Distances
	k.resources = &cm.Manager{Providers: []cm.Provider{k.cgroups, users, k.devices, k.dra, k.cpu, memories}, Topology: topology, Metrics: k.metrics, Event: k.events.Pod, Log: k.cfg.Log}
	return nil
}

// podResources tells what containers have been given.
func (k *Kubelet) podResources() *podresources.Server {
	return &podresources.Server{RootDir: k.cfg.RootDir, Resources: k.resources, Pods: k.active, Count: k.metrics.PodResourcesAsked}
}
