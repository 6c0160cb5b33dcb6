package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/binding"
	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/kubeletproxy"
	"bonsai/pkg/apiserver/registry/reviews"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/registry/token"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// behaviours answer for resources and subresources that are more than storing.
type behaviours struct {
	creaters     map[schema.GroupResource]registry.Creater
	subresources map[schema.GroupResource]map[string]any
}

// newBehaviours is the list of them all.
func newBehaviours(o *options, s *stores, who *authentication, may *authorization) (*behaviours, error) {
	addresses := make([]corev1.NodeAddressType, len(o.kubeletAddressTypes))
	for i, t := range o.kubeletAddressTypes {
		addresses[i] = corev1.NodeAddressType(t)
	}
	kubelets, err := kubeletproxy.New(kubeletproxy.Config{Stores: s, CAFile: o.kubeletCA, CertFile: o.kubeletCert, KeyFile: o.kubeletKey, AddressTypes: addresses})
	if err != nil {
		return nil, fmt.Errorf("connections to kubelets: %w", err)
	}
	tokens, err := token.New(token.Config{Stores: s, Issuer: issuer{who.issuer}, Audiences: who.audiences, Now: time.Now})
	if err != nil {
		return nil, err
	}
	bind, core := binding.New(s, time.Now), func(r string) schema.GroupResource { return schema.GroupResource{Resource: r} }
	b := &behaviours{
		creaters: map[schema.GroupResource]registry.Creater{
			core("bindings"): bind,
			{Group: authenticationv1.GroupName, Resource: "tokenreviews"}:             reviews.NewTokenReview(who.tokens, who.audiences),
			{Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"}:       reviews.NewSelfSubjectReview(time.Now),
			{Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}:      reviews.NewSubjectAccessReview(may.authorizer),
			{Group: authorizationv1.GroupName, Resource: "localsubjectaccessreviews"}: reviews.NewLocalSubjectAccessReview(may.authorizer),
			{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}:  reviews.NewSelfSubjectAccessReview(may.authorizer),
			{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"}:   reviews.NewSelfSubjectRulesReview(rules{may}),
		},
		subresources: map[schema.GroupResource]map[string]any{
			core("pods"): {
				"binding": bind, "eviction": eviction.New(s, time.Now),
				"log": kubelets.Log(), "exec": kubelets.Exec(), "attach": kubelets.Attach(), "portforward": kubelets.PortForward(), "proxy": kubelets.Pod(),
			},
			core("nodes"):           {"proxy": kubelets.Node()},
			core("services"):        {"proxy": kubelets.Service()},
			core("serviceaccounts"): {"token": tokens},
		},
	}
	return b, b.addScales(s)
}

func (b *behaviours) addScales(s *stores) error {
	for gr := range scale.Adapters() {
		if s.byResource[gr] == nil {
			continue
		}
		r, err := scale.New(s, gr)
		if err != nil {
			return err
		}
		b.subresources[gr] = map[string]any{"scale": r}
	}
	return nil
}

// resources puts rows, stores and behaviours together.
func (b *behaviours) resources(all []resources.Row, s *stores) []rest.Resource {
	out := make([]rest.Resource, len(all))
	for i := range all {
		gr := all[i].GroupResource()
		out[i] = rest.Resource{Row: &all[i], Store: s.byResource[gr], Creater: b.creaters[gr], Subresources: b.subresources[gr]}
	}
	return out
}

// issuer lets the token subresource sign with the authenticator's issuer.
type issuer struct{ *serviceaccount.Issuer }

func (i issuer) Issue(ctx context.Context, c token.Claims) (string, time.Time, error) {
	r := serviceaccount.Request{Namespace: c.ServiceAccount.Namespace, ServiceAccount: *ref(c.ServiceAccount), Audiences: c.Audiences, Lifetime: c.Lifetime}
	if c.Pod != nil {
		r.Pod = ref(c.Pod)
	}
	if c.Secret != nil {
		r.Secret = ref(c.Secret)
	}
	if c.Node != nil {
		r.Node = ref(c.Node)
	}
	return i.Issuer.Issue(ctx, r)
}

func ref(obj metav1.Object) *serviceaccount.Ref {
	return &serviceaccount.Ref{Name: obj.GetName(), UID: obj.GetUID()}
}

// errNodeRules is shown to a node that reviews its rules: the Node mode cannot list what it allows.
var errNodeRules = errors.New("node authorizer does not support user rule resolution")

// rules lets the review of one's own rights read them: from RBAC, and everything where everything is allowed.
type rules struct{ *authorization }

func (r rules) RulesFor(ctx context.Context, user *request.User, namespace string) ([]authorizationv1.ResourceRule, []authorizationv1.NonResourceRule, bool, error) {
	var s authorizationv1.SubjectRulesReviewStatus
	if r.usesRBAC {
		s = r.rbac.ReviewRules(ctx, user, namespace)
	}
	if r.allowsAll {
		s.ResourceRules = append(s.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	}
	if r.usesNode && user.InGroup("system:nodes") {
		return s.ResourceRules, s.NonResourceRules, true, errNodeRules
	}
	return s.ResourceRules, s.NonResourceRules, s.Incomplete, nil
}
