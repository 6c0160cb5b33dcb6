package resourceclaim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"bonsai/pkg/controller"
)

// pod makes the claims that a pod misses, says in its status what they are called, and reserves claims for a pod that
// was given its node by somebody who reserves none.
func (c *Controller) pod(ctx context.Context, p *corev1.Pod) error {
	var news []corev1.PodResourceClaimStatus
	var errs []error
	for i := range p.Spec.ResourceClaims {
		pc := &p.Spec.ResourceClaims[i]
		if pc.ResourceClaimTemplateName == nil {
			continue
		}
		name, err := c.ensure(ctx, p, pc)
		if err != nil {
			c.Events.Eventf(p, corev1.EventTypeWarning, "FailedResourceClaimCreation", "PodResourceClaim %s: %v",
				pc.Name, err)
			errs = append(errs, fmt.Errorf("PodResourceClaim %s: %w", pc.Name, err))
			continue
		}
		if told, _, err := resourceclaim.Name(p, pc); err != nil || told == nil || *told != name {
			news = append(news, corev1.PodResourceClaimStatus{Name: pc.Name, ResourceClaimName: &name})
		}
	}
	if len(news) > 0 {
		errs = append(errs, c.tell(ctx, p, news))
	}
	if p.Spec.NodeName != "" {
		errs = append(errs, c.reserve(ctx, p))
	}
	return errors.Join(errs...)
}

// ensure returns the name of the claim that the template gives a pod, which it makes if there is none.
func (c *Controller) ensure(ctx context.Context, p *corev1.Pod, pc *corev1.PodResourceClaim) (string, error) {
	if told, _, err := resourceclaim.Name(p, pc); err == nil && told != nil {
		if have, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: *told}); ok {
			return *told, resourceclaim.IsForPod(p, have, false)
		}
	}
	for _, have := range c.claims.OwnedBy(p.UID) {
		if have.Annotations[resourcev1.PodResourceClaimAnnotation] == pc.Name {
			return have.Name, nil
		}
	}
	if name := c.made.name(p.UID, pc.Name); name != "" {
		return name, nil
	}
	template := *pc.ResourceClaimTemplateName
	t, ok := c.templates.Get(controller.Key{Namespace: p.Namespace, Name: template})
	if !ok {
		return "", fmt.Errorf("resource claim template %q: %w", template,
			apierrors.NewNotFound(resourcev1.Resource("resourceclaimtemplate"), template))
	}
	got, err := c.writes.Create(ctx, claimFor(p, pc.Name, t))
	c.count(&t.Spec.Spec, err)
	if err != nil {
		return "", fmt.Errorf("create ResourceClaim from template %s: %w", template, err)
	}
	c.made.remember(p.UID, pc.Name, got.Name)
	if _, ok := c.claims.Get(controller.KeyOf(got)); ok {
		c.made.forget(got)
	}
	return got.Name, nil
}

// tell writes the names of claims that were made into the pod's status, if it is still the same pod.
func (c *Controller) tell(ctx context.Context, p *corev1.Pod, news []corev1.PodResourceClaimStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{"resourceClaimStatuses": news},
	})
	if err != nil {
		return err
	}
	_, err = c.statuses.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, patch, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another pod, or none: its change brings it back
	}
	return err
}

// reserve reserves the allocated claims of a pod that has a node.
func (c *Controller) reserve(ctx context.Context, p *corev1.Pod) error {
	var errs []error
	for _, name := range controller.ResourceClaimsOf(p) {
		claim, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: name})
		if !ok {
			continue
		}
		if with := reserve(p, claim); with != nil {
			_, err := c.writes.UpdateStatus(ctx, with)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// made remembers the claims that were made and that the cache does not show yet: their names are the server's, so that
// without it a pod could get two.
type made struct {
	mu    sync.Mutex
	names map[types.UID]map[string]string // by the pod's uid, and its claim's name in the pod
}

func (m *made) name(pod types.UID, claim string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[pod][claim]
}

func (m *made) remember(pod types.UID, claim, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[types.UID]map[string]string{}
	}
	if m.names[pod] == nil {
		m.names[pod] = map[string]string{}
	}
	m.names[pod][claim] = name
}

// forget drops the note about a claim that the cache shows by now.
func (m *made) forget(claim *resourcev1.ResourceClaim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range claim.OwnerReferences {
		names, pc := m.names[ref.UID], claim.Annotations[resourcev1.PodResourceClaimAnnotation]
		if names[pc] == claim.Name {
			delete(names, pc)
		}
		if len(names) == 0 {
			delete(m.names, ref.UID)
		}
	}
}

func (m *made) forgetPod(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.names, pod)
}
