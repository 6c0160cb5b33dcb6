package csi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/volume"
)

// work is everything that a driver gets for one volume of a pod. Prepare fills it in before the pod's volumes are
// touched, and publish only reads it. So publish asks the API server for nothing while it holds the lock of a volume;
// it only waits in showInUse.
type work struct {
	id        volumeID
	driver    *driver
	lifecycle string
	// attachment is the VolumeAttachment's name, "" if nothing attaches the volume; publishContext is the metadata from
	// the attachment.
	attachment     string
	publishContext map[string]string
	capability     *csi.VolumeCapability
	readOnly       bool
	// attributes are the volume's; context has these and what the driver wants to know about the pod.
	attributes, context          map[string]string
	stageSecrets, publishSecrets map[string]string
	// ownership: the kubelet gives the volume to the pod's group. republish: the volume is published again and again,
	// so that the pod's tokens stay fresh.
	ownership, republish bool
}

// Prepare implements volume.Source. It asks the API server for everything that the driver gets. It does not wait for an
// attachment; it is called again later. A place that is published and needs no further call is answered from memory:
// the volume manager calls Prepare for every pod in each period.
func (s *Source) Prepare(ctx context.Context, r volume.Request) (volume.Publish, error) {
	mounted := volume.Mounted{HostPath: s.target(r.Place), ReadOnly: readOnly(r)}
	if r.Block() {
		mounted.HostPath, mounted.Device = r.Dir, true
	}
	if s.settled(s.target(r.Place)) {
		return func() (volume.Mounted, error) { return mounted, nil }, nil
	}
	w, err := s.work(ctx, r)
	if err != nil {
		return nil, err
	}
	return func() (volume.Mounted, error) { return mounted, s.publish(ctx, r, w) }, nil
}

// readOnly reports whether the pod, or the volume itself, asks for it read-only.
func readOnly(r volume.Request) bool {
	if r.PV != nil {
		return r.ReadOnly || r.PV.Spec.CSI.ReadOnly
	}
	return r.Volume.CSI.ReadOnly != nil && *r.Volume.CSI.ReadOnly
}

// work gathers what the driver gets. It reports an unknown driver or mode before a missing attachment, for which the
// pod waits.
func (s *Source) work(ctx context.Context, r volume.Request) (*work, error) {
	w := &work{readOnly: readOnly(r)}
	fsType := ""
	if r.PV != nil {
		c := r.PV.Spec.CSI
		w.id, w.lifecycle, w.attributes, fsType = volumeID{c.Driver, c.VolumeHandle}, persistent, c.VolumeAttributes,
			c.FSType
	} else {
		c := r.Volume.CSI
		w.id, w.lifecycle, w.attributes = volumeID{c.Driver, inlineHandle(r)}, inline, c.VolumeAttributes
		if c.FSType != nil {
			fsType = *c.FSType
		}
	}
	var err error
	if w.driver, err = s.cfg.Drivers.get(w.id.driver); err != nil {
		return nil, fmt.Errorf("kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: %w", err)
	}
	about, err := s.about(ctx, w.id.driver)
	if err != nil {
		return nil, err
	}
	if err := supports(about, w); err != nil {
		return nil, err
	}
	if err := s.attached(ctx, about, r, w); err != nil {
		return nil, err
	}
	if err := s.secrets(ctx, r, w); err != nil {
		return nil, err
	}
	if err := s.describe(ctx, about, r, w); err != nil {
		return nil, err
	}
	w.capability = capability(r, w, fsType)
	w.ownership = owns(about, r, w, fsType)
	return w, nil
}

// inlineHandle returns the driver's handle of a volume that lives as long as its pod. It is computed from the pod and
// the name alone, so that a kubelet that restarted finds the same volume again.
func inlineHandle(r volume.Request) string {
	sum := sha256.Sum256([]byte(string(r.Pod.UID) + r.Volume.Name))
	return "csi-" + hex.EncodeToString(sum[:])
}

// about returns the cluster's description of a driver; without a CSIDriver, the defaults.
func (s *Source) about(ctx context.Context, driver string) (*storagev1.CSIDriverSpec, error) {
	d, err := s.cfg.Client.CSIDriver(ctx, driver)
	if apierrors.IsNotFound(err) {
		return &storagev1.CSIDriverSpec{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CSIDriver %s: %w", driver, err)
	}
	return &d.Spec, nil
}

// is returns a setting of a CSIDriver, or its default.
func is(setting *bool, byDefault bool) bool {
	if setting == nil {
		return byDefault
	}
	return *setting
}

func supports(about *storagev1.CSIDriverSpec, w *work) error {
	modes := about.VolumeLifecycleModes
	if len(modes) == 0 {
		modes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	if !slices.Contains(modes, storagev1.VolumeLifecycleMode(w.lifecycle)) {
		return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", w.lifecycle, w.id.driver,
			modes)
	}
	return nil
}

// AttachmentName returns the name of the VolumeAttachment of a volume on a node. The controller that makes it computes
// the same. The node can therefore read its attachment by name, and needs no right to list all of them.
func AttachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// attached checks that a volume that needs an attachment has one, and keeps its metadata. A PendingError means that
// somebody else has yet to act, and that the pod waits; any other error is a failure that the pod shows. An attachment
// that is being deleted counts as pending: a new one has the same name and can come only after it.
func (s *Source) attached(ctx context.Context, about *storagev1.CSIDriverSpec, r volume.Request, w *work) error {
	if w.lifecycle != persistent || !is(about.AttachRequired, true) {
		return nil
	}
	w.attachment = AttachmentName(w.id.handle, w.id.driver, s.cfg.Node)
	fail := func(err error) error {
		return step(r, "MountVolume.WaitForAttach failed", "MapVolume.WaitForAttach failed", err)
	}
	pending := func(err error) error { return fail(&volume.PendingError{Volume: r.Volume.Name, Err: err}) }
	a, err := s.cfg.Client.VolumeAttachment(ctx, w.attachment)
	switch {
	case err != nil:
		why := fmt.Errorf("volume %s has GET error for volume attachment %s: %w", w.id.handle, w.attachment, err)
		// The node authorizer forbids reading an attachment that does not exist.
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return pending(why)
		}
		return fail(why)
	case a.DeletionTimestamp != nil:
		return pending(errors.New("volume attachment is being deleted"))
	case a.Status.Attached:
		w.publishContext = a.Status.AttachmentMetadata
		return nil
	case a.Status.AttachError != nil:
		return pending(s.attachError(ctx, w.id.driver, a.Status.AttachError))
	}
	return pending(fmt.Errorf("volume %s is not attached yet", w.id.handle))
}

// attachError returns why a volume is not attached. If the node is at its limit, the limit in the CSINode is out of
// date: it is corrected, so that no further pods are sent here for such a volume.
func (s *Source) attachError(ctx context.Context, driver string, e *storagev1.VolumeError) error {
	err := errors.New(e.Message)
	if e.ErrorCode == nil || codes.Code(*e.ErrorCode) != codes.ResourceExhausted {
		return err
	}
	if failed := s.cfg.Drivers.refresh(ctx, driver); failed != nil {
		err = fmt.Errorf("%w (%w)", err, failed)
	}
	return &volume.LimitError{Err: err}
}

// secret reads a secret in the form that drivers get.
func (s *Source) secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	secret, err := s.cfg.Client.Secret(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("failed to get secret %s/%s: %w", namespace, name, err)
	}
	out := map[string]string{}
	for k, v := range secret.Data {
		out[k] = string(v)
	}
	return out, nil
}

// secrets reads the secrets that the volume refers to. The secret of an inline volume is in the pod's namespace, so a
// pod cannot name another namespace's. Those of a PersistentVolume are where its administrator put them.
func (s *Source) secrets(ctx context.Context, r volume.Request, w *work) error {
	if r.PV == nil {
		ref := r.Volume.CSI.NodePublishSecretRef
		if ref == nil {
			return nil
		}
		var err error
		w.publishSecrets, err = s.secret(ctx, r.Pod.Namespace, ref.Name)
		return err
	}
	for ref, to := range map[*corev1.SecretReference]*map[string]string{
		r.PV.Spec.CSI.NodeStageSecretRef: &w.stageSecrets, r.PV.Spec.CSI.NodePublishSecretRef: &w.publishSecrets} {
		if ref == nil {
			continue
		}
		var err error
		if *to, err = s.secret(ctx, ref.Namespace, ref.Name); err != nil {
			return err
		}
	}
	return nil
}

// describe fills in the volume's description for the driver, with the pod's if the driver wants that. It clones
// attributes, which belong to objects that others read. Tokens go into the secrets if the driver asks for that, because
// drivers log the context more readily than secrets.
func (s *Source) describe(ctx context.Context, about *storagev1.CSIDriverSpec, r volume.Request, w *work) error {
	w.context = maps.Clone(w.attributes)
	add := func(key, value string) {
		if w.context == nil {
			w.context = map[string]string{}
		}
		w.context[key] = value
	}
	if is(about.PodInfoOnMount, false) {
		add("csi.storage.k8s.io/pod.name", r.Pod.Name)
		add("csi.storage.k8s.io/pod.namespace", r.Pod.Namespace)
		add("csi.storage.k8s.io/pod.uid", string(r.Pod.UID))
		add("csi.storage.k8s.io/serviceAccount.name", r.Pod.Spec.ServiceAccountName)
		add("csi.storage.k8s.io/ephemeral", strconv.FormatBool(w.lifecycle == inline))
	}
	w.republish = is(about.RequiresRepublish, false)
	if len(about.TokenRequests) == 0 {
		return nil
	}
	tokens, err := s.tokens(ctx, about.TokenRequests, r.Pod)
	if err != nil {
		return err
	}
	if is(about.ServiceAccountTokenInSecrets, false) {
		w.publishSecrets = maps.Clone(w.publishSecrets)
		if w.publishSecrets == nil {
			w.publishSecrets = map[string]string{}
		}
		w.publishSecrets[tokensKey] = tokens
		return nil
	}
	add(tokensKey, tokens)
	return nil
}

const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// tokens returns tokens of the pod's account by audience, in the form that drivers read. The tokens are bound to the
// pod and end with it. A new set is requested at each call, so that republishing brings fresh ones.
func (s *Source) tokens(ctx context.Context, wants []storagev1.TokenRequest, pod *corev1.Pod) (string, error) {
	out := map[string]authnv1.TokenRequestStatus{}
	for _, want := range wants {
		req := &authnv1.TokenRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace},
			Spec: authnv1.TokenRequestSpec{ExpirationSeconds: want.ExpirationSeconds,
				BoundObjectRef: &authnv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
					UID: pod.UID}}}
		if want.Audience != "" {
			req.Spec.Audiences = []string{want.Audience}
		}
		got, err := s.cfg.Client.CreateToken(ctx, pod.Namespace, pod.Spec.ServiceAccountName, req)
		if err != nil {
			return "", fmt.Errorf("failed to get service account token: %w", err)
		}
		out[want.Audience] = got.Status
	}
	data, err := json.Marshal(out)
	return string(data), err
}

// capability returns how the volume is to be mounted.
func capability(r volume.Request, w *work, fsType string) *csi.VolumeCapability {
	mode := &csi.VolumeCapability_AccessMode{Mode: accessMode(r, w.driver)}
	if r.Block() {
		return &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: mode}
	}
	m := &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: r.MountOptions()}
	if g := group(r.Pod); g != nil && w.driver.mountGroup {
		m.VolumeMountGroup = strconv.FormatInt(*g, 10)
	}
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: m}, AccessMode: mode}
}

func group(pod *corev1.Pod) *int64 {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// accessMode returns the CSI's one access mode for all of the volume's modes. Older drivers do not distinguish uses on
// one node.
func accessMode(r volume.Request, d *driver) csi.VolumeCapability_AccessMode_Mode {
	var modes []corev1.PersistentVolumeAccessMode
	if r.PV != nil {
		modes = r.PV.Spec.AccessModes
	}
	has := func(m corev1.PersistentVolumeAccessMode) bool { return slices.Contains(modes, m) }
	switch {
	case has(corev1.ReadWriteMany):
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case has(corev1.ReadOnlyMany) && has(corev1.ReadWriteOnce):
		return csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER
	case has(corev1.ReadOnlyMany):
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case has(corev1.ReadWriteOncePod) && d.multiWriter:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case has(corev1.ReadWriteOnce) && d.multiWriter:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// owns reports whether the kubelet gives the volume to the pod's group, as the driver's fsGroupPolicy says. A driver
// that applies the group itself (mountGroup) makes it unnecessary. The default policy leaves out volumes without a file
// system type, and those that only have access modes for several nodes.
func owns(about *storagev1.CSIDriverSpec, r volume.Request, w *work, fsType string) bool {
	if w.readOnly || w.driver.mountGroup || r.Block() {
		return false
	}
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if about.FSGroupPolicy != nil {
		policy = *about.FSGroupPolicy
	}
	switch policy {
	case storagev1.FileFSGroupPolicy:
		return true
	case storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy:
		return fsType != "" && r.PV != nil &&
			(slices.Contains(r.PV.Spec.AccessModes, corev1.ReadWriteOnce) ||
				slices.Contains(r.PV.Spec.AccessModes, corev1.ReadWriteOncePod))
	}
	return false
}
