package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/adminaccess"
	"bonsai/pkg/apiserver/registry/binding"
	"bonsai/pkg/apiserver/registry/claimstatus"
	"bonsai/pkg/apiserver/registry/componentstatus"
	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/kubeletproxy"
	"bonsai/pkg/apiserver/registry/requester"
	"bonsai/pkg/apiserver/registry/reviews"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/registry/serviceip"
	"bonsai/pkg/apiserver/registry/signing"
	"bonsai/pkg/apiserver/registry/token"
)

// newBehaviours is the list of all resources and subresources that are more than storing.
func newBehaviours(o *Options, stores registry.Stores, who *authentication, may *authorization,
	addresses *serviceip.Allocator, log *slog.Logger) (map[schema.GroupResource]Behaviour, error) {
	k := o.Kubelets
	kubelets, err := kubeletproxy.New(
		kubeletproxy.Config{Stores: stores, CAFile: k.CAFile, CertFile: k.CertFile, KeyFile: k.KeyFile,
			AddressTypes: k.AddressTypes, MaxBytesPerSec: k.MaxBytesPerSec, Log: log,
			LocalNetworks: o.LocalNetworks, AllowOwn: asNode(o.Hostname, stores),
			Dial: o.Egress.Dial(selector.Cluster)})
	if err != nil {
		return nil, fmt.Errorf("connections to kubelets: %w", err)
	}
	tokens, err := token.New(
		token.Config{Stores: stores, Issuer: issuer{who.issuer}, Audiences: who.audiences, Now: time.Now})
	if err != nil {
		return nil, err
	}
	bind, admin := binding.New(stores, time.Now), adminaccess.New(stores)
	all := map[schema.GroupResource]Behaviour{
		{Resource: "bindings"}:          creates(bind),
		{Resource: "componentstatuses"}: {Answers: catalog.Answers{Lister: componentstatus.New(o.Components)}},
		{Resource: "nodes"}: {
			Answers: catalog.Answers{
				Subresources: map[string]registry.Answerer{"proxy": {Connecter: kubelets.Node()}}}},
		{Resource: "services"}: {
			Answers: catalog.Answers{
				Subresources: map[string]registry.Answerer{"proxy": {Connecter: kubelets.Service()}}}, Hook: addresses},
		{Resource: "serviceaccounts"}: {
			Answers: catalog.Answers{Subresources: map[string]registry.Answerer{"token": {Creater: tokens}}}},
		{Resource: "pods"}: {Answers: catalog.Answers{Subresources: map[string]registry.Answerer{
			"binding": {Creater: bind}, "eviction": {Creater: eviction.New(stores, time.Now)},
			"log": {Connecter: kubelets.Log()}, "exec": {Connecter: kubelets.Exec()},
			"attach":      {Connecter: kubelets.Attach()},
			"portforward": {Connecter: kubelets.PortForward()}, "proxy": {Connecter: kubelets.Pod()},
		}}},
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}: {Hook: requester.Hook{}},
		{Group: certificatesv1.GroupName,
			Resource: "podcertificaterequests"}: {Checker: signing.New(may.authorizer)},
		{Group: resourcev1.GroupName, Resource: "resourceclaims"}: {Hook: admin,
			Checker: registry.Checkers{admin, claimstatus.New(may.authorizer)}},
		{Group: resourcev1.GroupName, Resource: "resourceclaimtemplates"}: {Hook: admin},
		{Group: authenticationv1.GroupName,
			Resource: "tokenreviews"}: creates(reviews.NewTokenReview(who.tokens, who.audiences)),
		{Group: authenticationv1.GroupName,
			Resource: "selfsubjectreviews"}: creates(reviews.NewSelfSubjectReview(time.Now)),
		{Group: authorizationv1.GroupName,
			Resource: "subjectaccessreviews"}: creates(reviews.NewSubjectAccessReview(may.authorizer)),
		{Group: authorizationv1.GroupName,
			Resource: "localsubjectaccessreviews"}: creates(reviews.NewLocalSubjectAccessReview(may.authorizer)),
		{Group: authorizationv1.GroupName,
			Resource: "selfsubjectaccessreviews"}: creates(reviews.NewSelfSubjectAccessReview(may.authorizer)),
		{Group: authorizationv1.GroupName,
			Resource: "selfsubjectrulesreviews"}: creates(reviews.NewSelfSubjectRulesReview(may.lister)),
	}
	for gr := range scale.Adapters() {
		r, err := scale.New(stores, gr)
		if err != nil {
			return nil, err
		}
		all[gr] = Behaviour{Answers: catalog.Answers{
			Subresources: map[string]registry.Answerer{"scale": {ReadWriter: r}}}}
	}
	return all, nil
}

// creates is the behaviour of a resource that is not stored.
func creates(c registry.Creater) Behaviour { return Behaviour{Answers: catalog.Answers{Creater: c}} }

// issuer lets the token subresource sign with the authenticator's issuer.
type issuer struct{ *serviceaccount.Issuer }

func (i issuer) Issue(ctx context.Context, c token.Claims) (string, time.Time, error) {
	r := serviceaccount.Request{Namespace: c.ServiceAccount.Namespace, ServiceAccount: *ref(c.ServiceAccount),
		Audiences: c.Audiences, Lifetime: c.Lifetime}
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
