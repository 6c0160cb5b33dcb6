package pod

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/why"
)

// backing is what a pod's volume really is: the source in the pod, or that of the PersistentVolume of its claim.
type backing struct {
	// shown is how sentences name it: "volume data", "volume data (PersistentVolume pv-1)".
	shown string
	// evidence says where its source stands.
	evidence []why.Evidence

	hostPath *corev1.HostPathVolumeSource
	nfs      *corev1.NFSVolumeSource
	// grouped says that the kubelet gives its files to the pod's fsGroup; not, why it does not, "" if that is unknown.
	grouped bool
	not     string
}

// backed finds what a volume is; ok is false for those without files that stay, and for those that nobody may read.
func backed(ctx context.Context, p *program, v *corev1.Volume) (b backing, ok bool) {
	b.shown = "volume " + v.Name
	field := fmt.Sprintf(`.spec.volumes[?(@.name=="%s")]`, v.Name)
	claim := ""
	switch {
	case v.HostPath != nil:
		b.hostPath, b.not = v.HostPath, "fsGroup does nothing for hostPath volumes"
		b.evidence = []why.Evidence{why.See(p.self, field+".hostPath.path", v.HostPath.Path)}
		return b, true
	case v.NFS != nil:
		b.nfs, b.not = v.NFS, "fsGroup does nothing for NFS volumes"
		b.evidence = []why.Evidence{why.See(p.self, field+".nfs", v.NFS.Server+":"+v.NFS.Path)}
		return b, true
	case v.PersistentVolumeClaim != nil:
		claim = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		claim = p.pod.Name + "-" + v.Name
	case v.CSI != nil:
		b.grouped, b.not = csiGroups(ctx, p, v.CSI.Driver, ptr.Deref(v.CSI.FSType, ""),
			[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) // as kubelets mount it
		b.evidence = []why.Evidence{why.See(p.self, field+".csi.driver", v.CSI.Driver)}
		return b, true
	default:
		return b, false
	}
	b.evidence = []why.Evidence{why.See(p.self, field+".persistentVolumeClaim.claimName", claim)}
	c, _ := why.Get[corev1.PersistentVolumeClaim](ctx, p.World, p.pod.Namespace, claim)
	if c == nil || c.Spec.VolumeName == "" {
		return b, true
	}
	pv, _ := why.Get[corev1.PersistentVolume](ctx, p.World, "", c.Spec.VolumeName)
	if pv == nil {
		return b, true
	}
	b.shown = fmt.Sprintf("volume %s (PersistentVolume %s)", v.Name, pv.Name)
	o := why.ObjectOf("", "PersistentVolume", pv)
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		b.hostPath, b.not = s.HostPath, "fsGroup does nothing for hostPath volumes"
		b.evidence = append(b.evidence, why.See(o, ".spec.hostPath.path", s.HostPath.Path))
	case s.NFS != nil:
		b.nfs, b.not = s.NFS, "fsGroup does nothing for NFS volumes"
		b.evidence = append(b.evidence, why.See(o, ".spec.nfs", s.NFS.Server+":"+s.NFS.Path))
	case s.Local != nil:
		b.grouped = true
		b.evidence = append(b.evidence, why.See(o, ".spec.local.path", s.Local.Path))
	case s.CSI != nil:
		b.grouped, b.not = csiGroups(ctx, p, s.CSI.Driver, s.CSI.FSType, pv.Spec.AccessModes)
		b.evidence = append(b.evidence, why.See(o, ".spec.csi.driver", s.CSI.Driver))
	default:
		b.grouped = true
	}
	return b, true
}

// csiGroups reports whether the kubelet gives volumes of a CSI driver to the pod's fsGroup, by the driver's
// fsGroupPolicy, and if not, why.
func csiGroups(ctx context.Context, p *program, driver, fsType string,
	modes []corev1.PersistentVolumeAccessMode,
) (grouped bool, not string) {
	d, known := why.Get[storagev1.CSIDriver](ctx, p.World, "", driver)
	if d == nil && !known {
		return true, ""
	}
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if d != nil && d.Spec.FSGroupPolicy != nil {
		policy = *d.Spec.FSGroupPolicy
	}
	once := slices.Contains(modes, corev1.ReadWriteOnce) || slices.Contains(modes, corev1.ReadWriteOncePod)
	switch {
	case policy == storagev1.NoneFSGroupPolicy:
		return false, fmt.Sprintf("fsGroup does nothing for volumes of the CSI driver %s, whose fsGroupPolicy is None",
			driver)
	case policy == storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy && (fsType == "" || !once):
		return false, fmt.Sprintf("fsGroup does nothing for this volume: by the fsGroupPolicy of the CSI driver %s, it "+
			"needs a file system type (fsType) and the access mode ReadWriteOnce", driver)
	}
	return true, ""
}

// volumeOwner explains a file of a volume that the container's user may not use: who owns the volume's files depends on
// what the volume is. who is the user in words, "user 1000".
func volumeOwner(ctx context.Context, p *program, file string, m *corev1.VolumeMount, v *corev1.Volume, who string,
	evidence []why.Evidence,
) (cause why.Cause, ok bool) {
	b, ok := backed(ctx, p, v)
	if !ok {
		return ofOthers(p, m, v, who, evidence)
	}
	group := fsGroup(p.pod)
	cause = why.Cause{Code: "VolumeOwner", Evidence: append(append([]why.Evidence{p.mounted(m, "name", v.Name)},
		evidence...), b.evidence...)}
	if group != nil {
		cause.Evidence = append(cause.Evidence, why.See(p.self, ".spec.securityContext.fsGroup", fmt.Sprint(*group)))
	}
	start := fmt.Sprintf("The container runs as %s, who may not use %s: ", who, file)
	switch {
	case b.nfs != nil:
		cause.Text = start + fmt.Sprintf("%s is of the NFS server %s (%s), which decides by the numbers of users and "+
			"groups, and mostly takes root for nobody (root_squash).", b.shown, b.nfs.Server, b.nfs.Path)
		cause.Fixes = []why.Fix{{Text: fmt.Sprintf("On the server, give %s to %s.", b.nfs.Path, ownerText(p))},
			{Text: "Or run the container as the user that owns it there (runAsUser), or in its group " +
				"(supplementalGroups)."}}
		if id, _, known := p.user(); known && id == 0 {
			cause.Fixes[0] = why.Fix{Text: fmt.Sprintf("On the server, let root keep its rights in %s (no_root_squash).",
				b.nfs.Path)}
		}
	case b.hostPath != nil:
		cause.Text = start + fmt.Sprintf("%s is the directory %s of node %s, which keeps the owner and the mode that it "+
			"has there. If the kubelet made it, that is root with 0755.", b.shown, b.hostPath.Path, p.pod.Spec.NodeName)
		cause.Fixes = []why.Fix{chowns(p, m)}
		if id, _, known := p.user(); known {
			cause.Fixes = append(cause.Fixes, why.Fix{Text: fmt.Sprintf("Or run this on node %s, as root.",
				p.pod.Spec.NodeName), Command: why.Command("chown %s %s", ownerOf(p, id), b.hostPath.Path)})
		}
		cause.Fixes = append(cause.Fixes, why.Fix{Text: "Or run the container as root (runAsUser: 0)."})
	case !b.grouped && b.not != "":
		cause.Text = start + fmt.Sprintf("the files of %s belong to whoever made them, root in most cases.", b.shown)
		cause.Fixes = []why.Fix{chowns(p, m)}
	case group != nil:
		return why.Cause{}, false // the kubelet has given them to the pod's group: something else is wrong
	default:
		cause.Text = fmt.Sprintf("The container runs as %s, and the files of %s belong to whoever made them, root in "+
			"most cases: no fsGroup gives them to the pod.", who, b.shown)
		cause.Fixes = []why.Fix{fixGroup}
	}
	if group != nil {
		cause.Text += fmt.Sprintf(" The pod's fsGroup %d does not help: %s.", *group, b.not)
	}
	return cause, true
}

// fixGroup lets the kubelet give a volume to the pod.
var fixGroup = why.Fix{Text: "Set fsGroup in the pod's securityContext: the kubelet then gives the volume's files to " +
	"that group, which the container is in."}

// fsGroup is the pod's, nil if it has none.
func fsGroup(p *corev1.Pod) *int64 {
	if s := p.Spec.SecurityContext; s != nil {
		return s.FSGroup
	}
	return nil
}

// ownerOf is the owner that lets a user in, as chown takes it: 1000:1000, or the number alone if no group is known.
func ownerOf(p *program, user int64) string {
	var group *int64
	if s := p.pod.Spec.SecurityContext; s != nil {
		group = cmp.Or(s.RunAsGroup, s.FSGroup)
	}
	if s := p.c.SecurityContext; s != nil && s.RunAsGroup != nil {
		group = s.RunAsGroup
	}
	if group == nil {
		return fmt.Sprint(user)
	}
	return fmt.Sprintf("%d:%d", user, *group)
}

// ownerText is ownerOf in words.
func ownerText(p *program) string {
	if id, _, known := p.user(); known {
		return "the owner " + ownerOf(p, id)
	}
	return "the user of the container's image"
}

// chowns is an init container of root that gives a mounted volume to the container's user, with the container's own
// image: the node has that one.
func chowns(p *program, m *corev1.VolumeMount) why.Fix {
	f := why.Fix{Text: fmt.Sprintf("Let an init container that runs as root give %s to %s (chown).", m.MountPath,
		ownerText(p))}
	id, _, known := p.user()
	owner := p.workload()
	if !known || owner == nil || !slices.Contains(withTemplates, owner.Kind) {
		return f
	}
	type object = map[string]any
	mount := object{"name": m.Name, "mountPath": m.MountPath}
	if m.SubPath != "" {
		mount["subPath"] = m.SubPath
	}
	patch, err := json.Marshal(object{"spec": object{"template": object{"spec": object{"initContainers": []object{{
		"name": ownName(m.Name), "image": p.c.Image, "command": []string{"chown", ownerOf(p, id), m.MountPath},
		"securityContext": object{"runAsUser": 0, "runAsNonRoot": false}, "volumeMounts": []object{mount}}}}}}})
	if err == nil {
		f.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(), string(patch))
	}
	return f
}

// ownName is the name of an init container for a volume, which may be as long as a volume's at most.
func ownName(volume string) string {
	const most = 63
	name := "own-" + volume
	return strings.TrimRight(name[:min(len(name), most)], "-")
}

// ofOthers explains a file of an emptyDir, which all users may write, but which belongs to the one that made it: a
// container of another user.
func ofOthers(p *program, m *corev1.VolumeMount, v *corev1.Volume, who string, evidence []why.Evidence,
) (why.Cause, bool) {
	own, _, known := p.user()
	if v.EmptyDir == nil || !known {
		return why.Cause{}, false
	}
	for _, list := range []struct {
		what       string
		containers []corev1.Container
	}{{"init container", p.pod.Spec.InitContainers}, {"container", p.pod.Spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			mounts := slices.ContainsFunc(c.VolumeMounts, func(o corev1.VolumeMount) bool {
				return o.Name == v.Name && !o.ReadOnly
			})
			other := &program{inquiry: p.inquiry, c: c, what: list.what}
			id, field, known := other.user()
			if c.Name == p.c.Name || !mounts || known && id == own {
				continue
			}
			user := "the user of its image"
			if known {
				user = fmt.Sprintf("user %d", id)
				evidence = append(evidence, why.See(p.self, field, fmt.Sprint(id)))
			}
			return why.Cause{Code: "VolumeOwner",
				Text: fmt.Sprintf("The container runs as %s, and %s %s, which writes into volume %s, too, as %s: files "+
					"belong to who made them.", who, list.what, c.Name, v.Name, user),
				Evidence: append([]why.Evidence{p.mounted(m, "name", v.Name)}, evidence...),
				Fixes: []why.Fix{{Text: "Run both as the same user (runAsUser), or let the one make its files writable " +
					"for others."}}}, true
		}
	}
	return why.Cause{}, false
}

// overNFS reports whether a file is of an NFS server, which may refuse root, too.
func overNFS(ctx context.Context, p *program, file string) bool {
	_, v := p.mount(file)
	if v == nil {
		return false
	}
	b, ok := backed(ctx, p, v)
	return ok && b.nfs != nil
}
