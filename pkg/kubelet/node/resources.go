package node

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Available is what the machine has left now. Totals of zero are unknown and cause no pressure.
type Available struct {
	Memory                  int64 // bytes
	Disk, DiskTotal         int64 // bytes, of the file system of the kubelet's root directory
	Inodes, InodesTotal     int64
	Processes, ProcessesMax int64 // running, and the most the kernel allows
}

// Resources says how the machine is divided: capacity less what is reserved and what the eviction thresholds keep free is
// allocatable.
type Resources struct {
	// MaxPods is 110 by default.
	MaxPods int64
	// Reserved is kubeReserved and systemReserved together.
	Reserved corev1.ResourceList
	// Hard are the eviction thresholds by signal: memory.available, nodefs.available, nodefs.inodesFree, pid.available; each a
	// quantity or a percentage. Nil means the defaults 100Mi, 10%, 5% and none.
	Hard map[string]string
}

func (r Resources) capacity(machine corev1.ResourceList) corev1.ResourceList {
	out := machine.DeepCopy()
	pods := r.MaxPods
	if pods == 0 {
		pods = 110
	}
	out[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	return out
}

// Allocatable is what pods may request together on a machine of that capacity.
func (r Resources) Allocatable(machine corev1.ResourceList) corev1.ResourceList {
	out := r.capacity(machine)
	for name, q := range out {
		if reserved, ok := r.Reserved[name]; ok {
			q.Sub(reserved)
		}
		switch name {
		case corev1.ResourceMemory:
			q.Sub(*resource.NewQuantity(r.threshold("memory.available", machine.Memory().Value()), resource.BinarySI))
		case corev1.ResourceEphemeralStorage:
			q.Sub(*resource.NewQuantity(r.threshold("nodefs.available", machine.StorageEphemeral().Value()), resource.BinarySI))
		}
		if q.Sign() < 0 {
			q = *resource.NewQuantity(0, q.Format)
		}
		out[name] = q
	}
	// Huge pages are memory that is no longer there for others.
	memory := out[corev1.ResourceMemory]
	for name, q := range out {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && q.Sign() > 0 {
			memory.Sub(q)
		}
	}
	out[corev1.ResourceMemory] = memory
	return out
}

// Pressure compares what is available with the thresholds.
func (r Resources) Pressure(a Available, machine corev1.ResourceList) Pressure {
	below := func(signal string, available, total int64) bool {
		return total > 0 && available < r.threshold(signal, total)
	}
	return Pressure{
		Memory: below("memory.available", a.Memory, machine.Memory().Value()),
		Disk:   below("nodefs.available", a.Disk, a.DiskTotal) || below("nodefs.inodesFree", a.Inodes, a.InodesTotal),
		PID:    below("pid.available", a.ProcessesMax-a.Processes, a.ProcessesMax),
	}
}

// threshold is the amount a signal must not fall below; 0 for none.
func (r Resources) threshold(signal string, total int64) int64 {
	hard := r.Hard
	if hard == nil {
		hard = map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"}
	}
	value, ok := hard[signal]
	if !ok {
		return 0
	}
	if p, ok := strings.CutSuffix(value, "%"); ok {
		f, err := strconv.ParseFloat(p, 64)
		if err != nil {
			return 0
		}
		return int64(float64(total) * f / 100)
	}
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return 0
	}
	return q.Value()
}
