package cgroup

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Drivers: who makes the cgroups of containers, which decides their names.
const (
	DriverCgroupfs = "cgroupfs"
	DriverSystemd  = "systemd"
)

// naming turns logical names (root, kubepods, burstable, pod<uid>) into paths below a hierarchy's mount point.
type naming struct {
	root    []string
	systemd bool
}

func newNaming(root, driver string) (naming, error) {
	n := naming{systemd: driver == DriverSystemd}
	if driver != DriverCgroupfs && driver != DriverSystemd {
		return n, fmt.Errorf("cgroup driver %q is neither cgroupfs nor systemd", driver)
	}
	for part := range strings.SplitSeq(path.Clean("/"+root), "/") {
		if part != "" {
			n.root = append(n.root, part)
		}
	}
	return n, nil
}

// path returns the path of a cgroup: /kubepods/burstable/pod1 or
// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice.
func (n naming) path(parts ...string) string {
	all := append(append([]string{}, n.root...), parts...)
	if !n.systemd {
		return "/" + path.Join(all...)
	}
	out, slice := "/", ""
	for _, p := range all {
		slice = strings.TrimPrefix(slice+"-"+strings.ReplaceAll(strings.TrimSuffix(p, ".slice"), "-", "_"), "-")
		out = path.Join(out, slice+".slice")
	}
	return out
}

// podParts returns the logical name of the pod's cgroup. Guaranteed pods are beside the cgroups of the classes, not in
// one.
func podParts(class corev1.PodQOSClass, uid types.UID) []string {
	if c := classDir(class); c != "" {
		return []string{"kubepods", c, "pod" + string(uid)}
	}
	return []string{"kubepods", "pod" + string(uid)}
}

func classDir(class corev1.PodQOSClass) string {
	switch class {
	case corev1.PodQOSBurstable:
		return "burstable"
	case corev1.PodQOSBestEffort:
		return "besteffort"
	}
	return ""
}

// parent returns the cgroup in the form that the CRI expects: its path, or with systemd the name of the slice.
func (n naming) parent(p string) string {
	if n.systemd {
		return path.Base(p)
	}
	return p
}

// uid returns the pod's UID from the last element of a path; ok is false if that is no pod's cgroup.
func (n naming) uid(base string) (types.UID, bool) {
	if n.systemd {
		base = strings.TrimSuffix(base, ".slice")
		base = base[strings.LastIndexByte(base, '-')+1:]
	}
	uid, ok := strings.CutPrefix(base, "pod")
	if n.systemd {
		uid = strings.ReplaceAll(uid, "_", "-")
	}
	return types.UID(uid), ok && uid != "" && uid != "s"
}

// container returns the directory of a container in its pod's cgroup.
func (n naming) container(pod, id string) string {
	if n.systemd {
		return path.Join(pod, "cri-containerd-"+id+".scope")
	}
	return path.Join(pod, id)
}
