// Package imagepolicywebhook is the admission plug-in ImagePolicyWebhook, which is off unless it is enabled: a webhook
// says which images pods may run. The server sends it an ImageReview and remembers the answer for a while.
package imagepolicywebhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/safetext"
)

// The review that the webhook gets and answers.
const (
	reviewKind    = "ImageReview"
	reviewVersion = "imagepolicy.k8s.io/v1alpha1"
)

const (
	// forWebhook is part of the keys of those annotations of a pod that the webhook sees, such as a ticket that breaks
	// the glass.
	forWebhook = ".image-policy.k8s.io/"
	// auditPrefix is that of all keys that the plug-in, and the webhook through it, writes into the audit log.
	auditPrefix = "imagepolicywebhook.image-policy.k8s.io/"
	failedOpen  = auditPrefix + "failed-open"
)

// Bounds of what is remembered: answers, and the bytes of one. A longer one is asked for again.
const (
	maxAnswers    = 1024
	maxRemembered = 16 << 10
)

type plugin struct {
	Configuration
	backend *backend
	now     func() time.Time
	answers *lru.Cache // of answer by the hash of what was asked
}

type answer struct {
	status *imagepolicyv1alpha1.ImageReviewStatus
	until  time.Time
}

// Hook is a webhook that can be asked.
type Hook struct {
	Configuration
	backend *backend
}

// NewHook reads where the webhook of a configuration is.
func NewHook(c *Configuration) (*Hook, error) {
	b, err := newBackend(c)
	if err != nil {
		return nil, err
	}
	return &Hook{*c, b}, nil
}

// New returns the plug-in. Without a Hook it must not be enabled.
func New(h *Hook, now func() time.Time) admission.Plugin {
	if h == nil {
		return admission.Plugin{Name: "ImagePolicyWebhook"}
	}
	return admission.Plugin{Name: "ImagePolicyWebhook", Validator: &plugin{Configuration: h.Configuration,
		backend: h.backend, now: now, answers: lru.New(maxAnswers)}}
}

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	images := asked(a)
	if len(images) == 0 {
		return nil
	}
	review := imagepolicyv1alpha1.ImageReview{TypeMeta: metav1.TypeMeta{Kind: reviewKind, APIVersion: reviewVersion},
		Spec: imagepolicyv1alpha1.ImageReviewSpec{Containers: images, Namespace: a.Namespace}}
	for k, v := range a.Object.(*corev1.Pod).Annotations {
		if strings.Contains(k, forWebhook) {
			if review.Spec.Annotations == nil {
				review.Spec.Annotations = map[string]string{}
			}
			review.Spec.Annotations[k] = v
		}
	}
	status, err := p.review(ctx, &review)
	if err != nil {
		if ctx.Err() == nil && p.DefaultAllow {
			request.Annotate(ctx, failedOpen, "true")
			return nil
		}
		if _, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // a wrapped one says more than its Status
			return err
		}
		return admission.Forbid(a, "%v", err)
	}
	for k, v := range status.AuditAnnotations {
		request.Annotate(ctx, auditPrefix+k, v)
	}
	switch {
	case status.Allowed:
		return nil
	case status.Reason == "":
		return admission.Forbid(a, "one or more images rejected by webhook backend")
	}
	return admission.Forbid(a, "image policy webhook backend denied one or more images: %s",
		safetext.Message(status.Reason))
}

// review returns what the webhook says, or said a while ago.
func (p *plugin) review(ctx context.Context,
	r *imagepolicyv1alpha1.ImageReview) (*imagepolicyv1alpha1.ImageReviewStatus, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(body)
	if have, ok := p.answers.Get(key); ok && p.now().Before(have.(answer).until) {
		return have.(answer).status, nil
	}
	status, size, err := p.backend.ask(ctx, body)
	if err != nil {
		return nil, err
	}
	ttl := p.DenyTTL
	if status.Allowed {
		ttl = p.AllowTTL
	}
	if ttl > 0 && size <= maxRemembered {
		p.answers.Add(key, answer{status, p.now().Add(ttl)})
	}
	return status, nil
}

// asked returns the images that the webhook is asked about: those of a new pod, or of one that gets others, and the
// ephemeral containers that are added. Other updates are not asked about: a pod must stay removable while the webhook
// does not answer.
func asked(a *admission.Attributes) []imagepolicyv1alpha1.ImageReviewContainerSpec {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	var of func(*corev1.Pod) []imagepolicyv1alpha1.ImageReviewContainerSpec
	switch {
	case a.Is(corev1.Resource("pods")):
		of = containers
	case a.Is(corev1.Resource("pods/ephemeralcontainers")):
		of = ephemeral
	default:
		return nil
	}
	images := of(pod)
	if old, ok := a.OldObject.(*corev1.Pod); ok && slices.Equal(images, of(old)) {
		return nil
	}
	return images
}

func containers(pod *corev1.Pod) []imagepolicyv1alpha1.ImageReviewContainerSpec {
	var out []imagepolicyv1alpha1.ImageReviewContainerSpec
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		out = append(out, imagepolicyv1alpha1.ImageReviewContainerSpec{Image: c.Image})
	}
	return out
}

func ephemeral(pod *corev1.Pod) []imagepolicyv1alpha1.ImageReviewContainerSpec {
	var out []imagepolicyv1alpha1.ImageReviewContainerSpec
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, imagepolicyv1alpha1.ImageReviewContainerSpec{Image: pod.Spec.EphemeralContainers[i].Image})
	}
	return out
}
