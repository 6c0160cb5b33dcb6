package noderestriction

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// certificate checks a PodCertificateRequest of a node (KEP-4317): the pod must run on the node under the service
// account of the request, and name the signer in a volume. A node, pod or account that is missing or has another UID
// may only be newer than this server's caches. The answer is then 500, and the kubelet tries again.
func (p plugin) certificate(ctx context.Context, a *admission.Attributes, node string) error {
	if a.Operation != admission.Create {
		return admission.Forbid(a, "unexpected operation %v", a.Operation)
	}
	r, ok := a.Object.(*certificatesv1.PodCertificateRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	s := &r.Spec
	if string(s.NodeName) != node {
		return admission.Forbid(a, "PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q",
			s.NodeName, node)
	}
	podKey := a.Namespace + "/" + s.PodName
	n, err := named[*corev1.Node](ctx, p.cfg.Nodes, types.NamespacedName{Name: node}, s.NodeUID, "node")
	if err != nil {
		return err
	}
	if n.UID != s.NodeUID {
		return fault("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)",
			podKey, s.NodeUID, n.UID)
	}
	pod, err := named[*corev1.Pod](ctx, p.cfg.Pods, types.NamespacedName{Namespace: a.Namespace, Name: s.PodName},
		s.PodUID, "pod")
	if err != nil {
		return err
	}
	if pod.UID != s.PodUID {
		return fault("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q",
			podKey, s.PodUID, pod.UID)
	}
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch account := pod.Spec.ServiceAccountName; {
	case pod.Spec.NodeName != node:
		return admission.Forbid(a, "pod %q is not running on node %q named in the PodCertificateRequest", podKey, node)
	case mirror:
		return admission.Forbid(a, "pod %q is a mirror pod", podKey)
	case account != s.ServiceAccountName:
		return admission.Forbid(a,
			"PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)",
			podKey, s.ServiceAccountName, account)
	}
	account, err := named[*corev1.ServiceAccount](ctx, p.cfg.ServiceAccounts,
		types.NamespacedName{Namespace: a.Namespace, Name: s.ServiceAccountName}, s.ServiceAccountUID,
		"service account")
	if err != nil {
		return err
	}
	if account.UID != s.ServiceAccountUID {
		return fault("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)",
			podKey, s.ServiceAccountUID, account.UID)
	}
	if !asksFor(pod, s.SignerName) && !p.mayAsk(ctx, a, s) {
		return admission.Forbid(a, "pod %q does not mount a podCertificate projected volume for signer %q", podKey,
			s.SignerName)
	}
	return nil
}

// mayAsk reports whether a node has the verb request-serviceaccounts-podcertificate-signer for a signer that no volume
// of the pod names. The resource is the signer, with a colon for its slash, the name that of the account.
func (p plugin) mayAsk(ctx context.Context, a *admission.Attributes,
	s *certificatesv1.PodCertificateRequestSpec) bool {
	decision, _, _ := p.cfg.Authorizer.Authorize(ctx, authz.Attributes{User: a.User, Info: request.Info{
		IsResource: true, Verb: "request-serviceaccounts-podcertificate-signer",
		APIGroup: certificatesv1.GroupName, APIVersion: "*", Namespace: a.Namespace,
		Resource: strings.ReplaceAll(s.SignerName, "/", ":"), Name: s.ServiceAccountName}})
	return decision == authz.Allow
}

// named reads an object that a request names: from a cache, or from the storage if the cached object has another UID. A
// missing object is a fault, because a 404 would be about the request itself.
func named[T interface {
	runtime.Object
	metav1.Object
}](ctx context.Context, from registry.Getter, key types.NamespacedName, uid types.UID, kind string) (T, error) {
	found, err := registry.Find[T](ctx, from, key.Namespace, key.Name)
	if err == nil && found.GetUID() != uid {
		var obj runtime.Object
		if obj, err = from.Get(ctx, key.Namespace, key.Name); err == nil {
			found, _ = obj.(T)
		}
	}
	shown := key.Name
	if key.Namespace != "" {
		shown = key.String()
	}
	switch {
	case apierrors.IsNotFound(err):
		return found, fault("while retrieving %s %q named in the PodCertificateRequest: %s %q not found", kind,
			shown, strings.ReplaceAll(kind, " ", ""), key.Name)
	case err != nil:
		return found, fault("while retrieving %s %q named in the PodCertificateRequest: %w", kind, shown, err)
	}
	return found, nil
}

// fault returns an error that clients get as a 500 with this message.
func fault(format string, args ...any) error { return registry.Plain(fmt.Errorf(format, args...)) }

// asksFor reports whether a podCertificate source of a pod names the signer.
func asksFor(pod *corev1.Pod, signer string) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Projected == nil {
			continue
		}
		for _, s := range pod.Spec.Volumes[i].Projected.Sources {
			if s.PodCertificate != nil && s.PodCertificate.SignerName == signer {
				return true
			}
		}
	}
	return false
}
