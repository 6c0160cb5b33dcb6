package attachdetach

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// patience is how long a node that is not ready, or that was deleted, may leave a volume mounted which no pod wants any
// more. Upstream calls it maxWaitForUnmountDuration.
const patience = 6 * time.Minute

// use is a volume that pods of the node want.
type use struct {
	volume *corev1.PersistentVolume
	pods   []*corev1.Pod
	// elsewhere are other nodes that the volume must leave first.
	elsewhere []string
	// holders are the names of pods that use the volume there, sorted. They are of the same namespace: a volume has one
	// claim.
	holders []string
}

// multiAttach is why the volume cannot be attached.
func (u *use) multiAttach() string {
	why := "Volume is already exclusively attached to one node and can't be attached to another"
	if len(u.holders) > 0 {
		why = "Volume is already used by pod(s) " + strings.Join(u.holders, ", ")
	}
	return fmt.Sprintf("Multi-Attach error for volume %q %s", u.volume.Name, why)
}

// state is what is known of a node; node is nil if it is gone.
//
// It is made for one round; decide asks nothing else, and writes only to waits.
type state struct {
	name        string
	node        *corev1.Node
	wanted      []use
	attachments []*storagev1.VolumeAttachment // of the node, of persistent volumes
	// handle is what its driver calls the volume of an attachment; false if that is not known any more.
	handle func(*storagev1.VolumeAttachment) (string, bool)
	now    time.Time
	force  bool
	waits  *waits
	// left is what a node that is gone reported last, nil if that is not known.
	left *departed
}

// waits remembers since when attachments are not wanted but in use. After a restart of the controller they are waited
// for again.
type waits struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// first is when an attachment was first waited for.
func (w *waits) first(name string, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.since[name]; !ok {
		w.since[name] = now
	}
	return w.since[name]
}

func (w *waits) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, name)
}

// plan is what to do about a node.
//
// Reconcile carries it out in this order: events, report, attach, detach.
type plan struct {
	attach, detach []*storagev1.VolumeAttachment
	// forced is why each of detach is not waited for that has to be, by the attachment's name, in upstream's words.
	forced map[string]string
	// report is what the node's status is to say, nil if it does.
	report *[]corev1.AttachedVolume
	events []event
	// again, if positive, is when to look again though nothing changes.
	again time.Duration
}

type event struct {
	pod                *corev1.Pod
	kind, reason, text string
}

// decide compares what pods want with what is attached.
//
// For each wanted volume: attached or being attached, so report it or wait; elsewhere, so tell the pods; else attach.
// Then for each attachment that no pod wants: release. A node that attaches for itself is left alone altogether.
func decide(s state) plan {
	var p plan
	if s.node != nil && !managed(s.node) { // its kubelet attaches
		return p
	}
	var keep []corev1.AttachedVolume
	wanted := map[string]bool{}
	for _, u := range s.wanted {
		id := u.volume.Spec.CSI
		name := attachmentName(id.VolumeHandle, id.Driver, s.name)
		wanted[name] = true
		s.waits.end(name)
		i := slices.IndexFunc(s.attachments, func(a *storagev1.VolumeAttachment) bool { return a.Name == name })
		switch {
		case s.node == nil:
		case i >= 0:
			a := s.attachments[i]
			if a.DeletionTimestamp == nil && a.Status.Attached {
				keep = append(keep, corev1.AttachedVolume{Name: uniqueName(id.Driver, id.VolumeHandle)})
			}
			p.events = append(p.events, s.tell(u, a)...)
		case len(u.elsewhere) > 0:
			for _, pod := range u.pods {
				p.events = append(p.events, event{pod, corev1.EventTypeWarning, "FailedAttachVolume", u.multiAttach()})
			}
			p.lookAgain(patience / 3) // told again; the attachment that goes wakes this node
		default:
			p.attach = append(p.attach, &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: storagev1.VolumeAttachmentSpec{Attacher: id.Driver, NodeName: s.name,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &u.volume.Name}},
			})
		}
	}
	for _, a := range s.attachments {
		// Its deletion is under way; the driver's attacher finishes it.
		if wanted[a.Name] || a.DeletionTimestamp != nil {
			continue
		}
		s.release(a, &p, &keep)
	}
	if s.node != nil {
		slices.SortFunc(keep, func(a, b corev1.AttachedVolume) int { return cmp.Compare(a.Name, b.Name) })
		if !slices.Equal(keep, s.node.Status.VolumesAttached) {
			p.report = &keep
		}
	}
	return p
}

// tell returns the events about an attachment that pods wait for: its success, once, when the node's status is about to
// show it, and each failure.
//
// The status shows the volume from the next write on, so success is reported in one round only.
func (s *state) tell(u use, a *storagev1.VolumeAttachment) []event {
	var out []event
	id := u.volume.Spec.CSI
	switch {
	case a.Status.Attached && !reported(s.node, uniqueName(id.Driver, id.VolumeHandle)):
		for _, pod := range u.pods {
			out = append(out, event{pod, corev1.EventTypeNormal, "SuccessfulAttachVolume",
				fmt.Sprintf("AttachVolume.Attach succeeded for volume %q ", u.volume.Name)})
		}
	case !a.Status.Attached && a.Status.AttachError != nil:
		for _, pod := range u.pods {
			out = append(out, event{pod, corev1.EventTypeWarning, "FailedAttachVolume",
				fmt.Sprintf("AttachVolume.Attach failed for volume %q : %s", u.volume.Name,
					a.Status.AttachError.Message)})
		}
	}
	return out
}

// release lets go of an attachment that no pod wants, once the node says that the volume is not in use. A node that
// cannot say so is waited for, but not for ever.
//
// In order: the out-of-service taint ends every wait, because an administrator vouches for the node; a volume in use
// waits for its node, and for patience if the node is silent and forcing is allowed; one that the status still reports
// leaves the status first; else it is detached. Detaching under a running container can corrupt a file system, hence
// the caution.
func (s *state) release(a *storagev1.VolumeAttachment, p *plan, keep *[]corev1.AttachedVolume) {
	handle, known := s.handle(a)
	if known && a.Name != attachmentName(handle, a.Spec.Attacher, s.name) {
		return // somebody else's
	}
	if !known && !strings.HasPrefix(a.Name, "csi-") {
		return
	}
	name := uniqueName(a.Spec.Attacher, handle)
	heard := s.node != nil && ready(s.node)
	switch {
	case s.outOfService():
		p.force(a, "out-of-service")
	case s.inUse(name, known):
		left := patience - s.now.Sub(s.waits.first(a.Name, s.now))
		if !s.force || heard || left > 0 {
			if a.Status.Attached {
				*keep = append(*keep, corev1.AttachedVolume{Name: name})
			}
			if s.force && !heard {
				p.lookAgain(max(left, time.Second))
			}
			return
		}
		p.force(a, "timeout")
	case s.node != nil && known && reported(s.node, name): // the status says so no more, and then it is detached
		return
	}
	s.waits.end(a.Name)
	p.detach = append(p.detach, a)
}

// outOfService reports whether an administrator vouches for it that nothing runs on the node any more.
//
// The taint alone is not enough while the node is ready: its kubelet is alive and can unmount.
func (s *state) outOfService() bool {
	if s.node == nil {
		return s.left != nil && s.left.outOfService
	}
	return outOfService(s.node) && !ready(s.node)
}

// inUse reports whether the node's kubelet said last that the volume is in use. A kubelet may outlive its Node object:
// of one that is gone, every volume counts as in use unless it said otherwise.
//
// The default is the safe one: a volume that wrongly counts as in use is detached late, the other mistake loses data.
func (s *state) inUse(name corev1.UniqueVolumeName, known bool) bool {
	switch {
	case s.node != nil:
		return known && slices.Contains(s.node.Status.VolumesInUse, name)
	case s.left == nil:
		return true
	case !known:
		return len(s.left.inUse) > 0
	}
	return slices.Contains(s.left.inUse, name)
}

// lookAgain asks for another look in d at the latest.
func (p *plan) lookAgain(d time.Duration) {
	if p.again == 0 || d < p.again {
		p.again = d
	}
}

func (p *plan) force(a *storagev1.VolumeAttachment, why string) {
	if p.forced == nil {
		p.forced = map[string]string{}
	}
	p.forced[a.Name] = why
}

// attachmentName is what the kubelet calls the attachment, too.
//
// The name is a contract: the kubelet looks the attachment up by this name to learn when it may mount.
func attachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// uniqueName is what a node's status calls the volume.
func uniqueName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + driver + "^" + handle)
}

func reported(n *corev1.Node, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == name })
}

// managed reports whether the node leaves attaching to this controller.
func managed(n *corev1.Node) bool {
	return n.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"] == "true"
}

func outOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	})
}

func ready(n *corev1.Node) bool {
	c := controller.NodeCondition(n, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
