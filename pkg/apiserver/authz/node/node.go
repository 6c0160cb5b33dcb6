// Package node authorizes kubelets (user system:node:<name>, group system:nodes): each may read its own node, lease and
// the pods bound to it, and the secrets, config maps, claims and service accounts that those pods need, and nothing of
// others. What it may write is narrowed further by the admission plug-in NodeRestriction.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage/follow"
)

// Config is what an Authorizer needs.
type Config struct {
	// Pods is where pods are, Volumes where PersistentVolumes, Attachments where VolumeAttachments, Slices where
	// ResourceSlices, Requests where PodCertificateRequests.
	Pods, Volumes, Attachments, Slices, Requests follow.Resource
	// Rules are what any node may do where no rule of this package is stricter: those of the ClusterRole system:node.
	Rules []rbacv1.PolicyRule
	Log   *slog.Logger
}

// Authorizer is the mode Node. It never denies, it has no opinion on what it does not allow.
type Authorizer struct {
	rules     []rbacv1.PolicyRule
	graph     *graph
	followers []*follow.Follower
}

var (
	_ authz.Authorizer = (*Authorizer)(nil)
	_ authz.Lister     = (*Authorizer)(nil)
)

// New returns an Authorizer that knows no pod yet; Run tells it of them.
func New(cfg Config) *Authorizer {
	g := newGraph()
	return &Authorizer{rules: cfg.Rules, graph: g, followers: []*follow.Follower{follow.New(cfg.Pods, g, cfg.Log),
		follow.New(cfg.Volumes, volumes{g}, cfg.Log),
		follow.New(cfg.Attachments, named{g, "volumeattachments", false, attachedTo}, cfg.Log),
		follow.New(cfg.Slices, named{g, "resourceslices", false, devicesOf}, cfg.Log),
		follow.New(cfg.Requests, named{g, "podcertificaterequests", true, requestedBy}, cfg.Log)}}
}

// Run keeps the graph of pods and what they need fresh until ctx ends.
func (a *Authorizer) Run(ctx context.Context) error {
	var all errgroup.Group
	for _, f := range a.followers {
		all.Go(func() error { return f.Run(ctx) })
	}
	return all.Wait()
}

// HasSynced reports whether the graph has all objects that there were when Run started. Before that nodes are refused
// what only a pod on them gives a right to.
func (a *Authorizer) HasSynced() bool {
	for _, f := range a.followers {
		if !f.HasSynced() {
			return false
		}
	}
	return true
}

// nameOf returns the node's name if the user is a node.
func nameOf(u *request.User) (name string, isNode bool) {
	if u == nil || !u.InGroup(request.GroupNodes) {
		return "", false
	}
	return strings.CutPrefix(u.Name, request.NodeUserPrefix)
}

// Authorize implements authz.Authorizer. NoOpinion lets RBAC still allow what an administrator has granted to nodes.
func (a *Authorizer) Authorize(ctx context.Context, at authz.Attributes) (authz.Decision, string, error) {
	name, ok := nameOf(at.User)
	switch {
	case !ok:
		return authz.NoOpinion, "", nil
	case name == "":
		return authz.NoOpinion, fmt.Sprintf("unknown node for user %q", at.User.Name), nil
	}
	if at.IsResource {
		if reason, decided, allowed := a.authorize(ctx, name, &at); decided && allowed {
			return authz.Allow, "", nil
		} else if decided {
			return authz.NoOpinion, reason, nil
		}
	}
	for i := range a.rules {
		if authz.RuleAllows(&a.rules[i], &at) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "", nil
}

// authorize applies the strict rules; decided is false where only the common rules speak.
func (a *Authorizer) authorize(ctx context.Context, node string, at *authz.Attributes) (reason string, decided,
	allowed bool) {
	switch at.APIGroup + "/" + at.Resource {
	case "/secrets", "/configmaps":
		reason, allowed = a.readNeeded(ctx, node, at)
	case "/persistentvolumeclaims":
		if at.Subresource == "status" {
			reason, allowed = a.claimStatus(ctx, node, at)
			break
		}
		reason, allowed = a.getNeeded(ctx, node, at)
	case "/persistentvolumes", "storage.k8s.io/volumeattachments", "resource.k8s.io/resourceclaims":
		reason, allowed = a.getNeeded(ctx, node, at)
	case "resource.k8s.io/resourceslices":
		reason, allowed = a.slices(ctx, node, at)
	case "certificates.k8s.io/podcertificaterequests":
		reason, allowed = a.requests(ctx, node, at)
	case "/serviceaccounts":
		reason, allowed = a.serviceAccount(ctx, node, at)
	case "/pods":
		return a.pods(ctx, node, at)
	case "/nodes":
		return ownNode(node, at)
	case "coordination.k8s.io/leases":
		reason, allowed = ownLease(node, at)
	case "storage.k8s.io/csinodes":
		reason, allowed = ownCSINode(node, at)
	default:
		return "", false, false
	}
	return reason, true, allowed
}

// lag is how long a node that asks for what nobody on it seems to need is kept waiting for the news of a pod that was
// bound to it just now: the kubelet may hear of it a moment earlier than this package does.
const lag = 100 * time.Millisecond

// related reports whether a node needs an object. needs returns changed under the same lock as its answer, so a pod
// that comes between the two is not missed. A node that asks for what it may not have waits for lag at each request.
func (a *Authorizer) related(ctx context.Context, node string, o object) (reason string, ok bool) {
	if o.name == "" {
		return "No Object name found", false
	}
	ctx, cancel := context.WithTimeout(ctx, lag)
	defer cancel()
	for {
		yes, changed := a.graph.needs(node, o)
		if yes {
			return "", true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !a.HasSynced() {
				return fmt.Sprintf("the pods of node '%s' are not known yet", node), false
			}
			return fmt.Sprintf("no relationship found between node '%s' and this object", node), false
		}
	}
}

// readNeeded is for secrets and config maps. A list or watch must be narrowed to one name: otherwise a node could read
// all secrets of a namespace.
func (a *Authorizer) readNeeded(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	switch {
	case at.Verb != "get" && at.Verb != "list" && at.Verb != "watch":
		return "can only read resources of this type", false
	case at.Subresource != "":
		return "cannot read subresource", false
	case at.Namespace == "":
		return "can only read namespaced object of this type", false
	}
	return a.related(ctx, node, object{at.Resource, at.Namespace, at.Name})
}

func (a *Authorizer) getNeeded(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	switch {
	case at.Verb != "get":
		return "can only get individual resources of this type", false
	case at.Subresource != "":
		return "cannot get subresource", false
	}
	return a.related(ctx, node, object{at.Resource, at.Namespace, at.Name})
}

// claimStatus: a node reports the growth of a volume that a pod on it uses.
func (a *Authorizer) claimStatus(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	if at.Verb != "update" && at.Verb != "patch" {
		return "can only get/update/patch this type", false
	}
	return a.related(ctx, node, object{at.Resource, at.Namespace, at.Name})
}

func (a *Authorizer) serviceAccount(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	switch {
	case at.Subresource == "" && at.Verb == "get":
	case at.Verb != "create" || at.Name == "" || at.Namespace == "":
		return "can only create tokens for individual service accounts", false
	case at.Subresource != "token":
		return "can only create token subresource of serviceaccount", false
	}
	return a.related(ctx, node, object{at.Resource, at.Namespace, at.Name})
}

func (a *Authorizer) pods(ctx context.Context, node string, at *authz.Attributes) (reason string, decided,
	allowed bool) {
	switch {
	case at.Verb == "get" && at.Subresource == "":
		reason, allowed = a.related(ctx, node, object{"pods", at.Namespace, at.Name})
		return reason, true, allowed
	case (at.Verb == "list" || at.Verb == "watch") && at.Subresource == "":
		if selects(at.FieldSelector, node) {
			return "", true, true
		}
		if at.Name != "" { // one pod, by the field selector metadata.name
			reason, allowed = a.related(ctx, node, object{"pods", at.Namespace, at.Name})
			return reason, true, allowed
		}
		return "can only list/watch pods with spec.nodeName field selector", true, false
	}
	return "", false, false
}

// slices: a node keeps the ResourceSlices of its own devices, and none of others. What a new one says is looked at by
// NodeRestriction.
func (a *Authorizer) slices(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	if at.Subresource != "" {
		return "cannot authorize ResourceSlice subresources", false
	}
	switch at.Verb {
	case "create":
		return "", true
	case "get", "update", "patch", "delete":
		return a.related(ctx, node, object{at.Resource, "", at.Name})
	case "list", "watch", "deletecollection":
		return "can only list/watch/deletecollection resourceslices with nodeName field selector",
			selects(at.FieldSelector, node)
	}
	return "can only get, list, watch, create, update, patch, delete, or deletecollection ResourceSlices", false
}

// requests: a node asks for certificates of its pods, and reads the answers. What it asks for is looked at by
// NodeRestriction.
func (a *Authorizer) requests(ctx context.Context, node string, at *authz.Attributes) (string, bool) {
	if at.Subresource != "" {
		return "nodes may not access the status subresource of PodCertificateRequests", false
	}
	switch at.Verb {
	case "create":
		return "", true
	case "get":
		return a.related(ctx, node, object{at.Resource, at.Namespace, at.Name})
	case "list", "watch":
		return "can only list/watch podcertificaterequests with nodeName field selector",
			selects(at.FieldSelector, node)
	}
	return fmt.Sprintf("nodes may not %s podcertificaterequests", at.Verb), false
}

// selects reports whether the field selector keeps only objects of node.
func selects(selector, node string) bool {
	s, err := fields.ParseSelector(selector)
	if err != nil {
		return false
	}
	v, ok := s.RequiresExactMatch("spec.nodeName")
	return ok && v == node
}

func ownNode(node string, at *authz.Attributes) (reason string, decided, allowed bool) {
	if at.Subresource != "" || at.Verb != "get" && at.Verb != "list" && at.Verb != "watch" {
		return "", false, false
	}
	switch at.Name {
	case node:
		return "", true, true
	case "":
		return fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", node), true, false
	}
	return fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, at.Name), true, false
}

func ownLease(node string, at *authz.Attributes) (string, bool) {
	switch at.Verb {
	case "get", "create", "update", "patch", "delete":
	default:
		return "can only get, create, update, patch, or delete a node lease", false
	}
	switch {
	case at.Namespace != corev1.NamespaceNodeLease:
		return fmt.Sprintf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease), false
	case at.Verb != "create" && at.Name != node: // on create the name is in the body: NodeRestriction looks at it
		return "can only access node lease with the same name as the requesting node", false
	}
	return "", true
}

func ownCSINode(node string, at *authz.Attributes) (string, bool) {
	if at.Subresource == "status" {
		return "CSINode status access requires CSIVolumeHealth feature", false // which is off by default
	}
	switch at.Verb {
	case "get", "create", "update", "patch", "delete":
	default:
		return "can only get, create, update, patch, or delete a CSINode", false
	}
	switch {
	case at.Subresource != "":
		return "cannot authorize CSINode subresources", false
	case at.Verb != "create" && at.Name != node:
		return "can only access CSINode with the same name as the requesting node", false
	}
	return "", true
}

// ReviewRules implements authz.Lister. What a node may do depends on the pods that are bound to it.
func (a *Authorizer) ReviewRules(_ context.Context, user *request.User,
	_ string) authorizationv1.SubjectRulesReviewStatus {
	if !user.InGroup(request.GroupNodes) {
		return authorizationv1.SubjectRulesReviewStatus{}
	}
	return authorizationv1.SubjectRulesReviewStatus{Incomplete: true,
		EvaluationError: "node authorizer does not support user rule resolution"}
}
