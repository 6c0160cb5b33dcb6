// Package token is the serviceaccounts/token subresource: it answers a TokenRequest with a signed token that is bound
// to the service account and, if asked, to a pod, secret or node, and dies with it.
package token

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/registry"
)

// Limits of what may be asked for, in seconds.
const (
	defaultSeconds = 3600
	minSeconds     = 10 * 60
	maxSeconds     = 1 << 32
)

// Claims is what a token is to say. Pod, Secret and Node are set when it is bound to them (Node also beside Pod).
type Claims struct {
	ServiceAccount *corev1.ServiceAccount
	Pod            *corev1.Pod
	Secret         *corev1.Secret
	Node           *corev1.Node
	Audiences      []string
	Lifetime       time.Duration
}

// Issuer signs tokens; it may cap or extend the lifetime. expiry is the time that the answer shows.
type Issuer interface {
	Issue(ctx context.Context, c Claims) (token string, expiry time.Time, err error)
}

// Config says how tokens are made.
type Config struct {
	Stores registry.Stores
	Issuer Issuer
	// Audiences are the API server's own (--api-audiences): the default for requests that name none.
	Audiences []string
	// Now stamps the answer.
	Now func() time.Time
}

// REST answers POST …/serviceaccounts/NAME/token.
type REST struct{ cfg Config }

var _ registry.Preparer = (*REST)(nil)

// New returns the behaviour; Stores, Issuer, Audiences and Now are required.
func New(cfg Config) (*REST, error) {
	if cfg.Stores == nil || cfg.Issuer == nil || cfg.Now == nil || len(cfg.Audiences) == 0 {
		return nil, fmt.Errorf("service account tokens: Stores, Issuer, Audiences and Now are required")
	}
	return &REST{cfg: cfg}, nil
}

// New returns an empty TokenRequest.
func (r *REST) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Default gives a token its usual lifetime.
func (r *REST) Default(obj runtime.Object) {
	if req, ok := obj.(*authenticationv1.TokenRequest); ok && req.Spec.ExpirationSeconds == nil {
		req.Spec.ExpirationSeconds = new(int64(defaultSeconds))
	}
}

// Create is Prepare and what follows in one, of a copy of obj.
func (r *REST) Create(ctx context.Context, ns, name string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	obj = obj.DeepCopyObject()
	r.Default(obj)
	create, err := r.Prepare(ctx, ns, name, obj)
	if err != nil {
		return nil, err
	}
	return create(ctx)
}

// Prepare makes the request one for the service account: 404 if there is none, 422 for a bad name or lifetime.
func (r *REST) Prepare(ctx context.Context, ns, name string,
	obj runtime.Object) (func(context.Context) (runtime.Object, error), error) {
	req, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest object: %T", obj))
	}
	kind := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()
	if errs := validateName(req, ns, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, name, errs)
	}
	sa, err := get[*corev1.ServiceAccount](ctx, r, "serviceaccounts", ns, name)
	if err != nil {
		return nil, err
	}
	r.Default(req) // a plug-in may have taken it out
	errs := validateAttestations(&req.Spec)
	if len(errs) == 0 {
		errs = validateLifetime(*req.Spec.ExpirationSeconds)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, "", errs)
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = slices.Clone(r.cfg.Audiences)
	}
	req.Name, req.Namespace, req.UID, req.CreationTimestamp = name, ns, uuid.NewUUID(), metav1.NewTime(r.cfg.Now())
	return func(ctx context.Context) (runtime.Object, error) { return r.issue(ctx, sa, req) }, nil
}

// issue answers with the signed token. 404 and 409 when the bound object is not there with that UID.
func (r *REST) issue(ctx context.Context, sa *corev1.ServiceAccount,
	req *authenticationv1.TokenRequest) (runtime.Object, error) {
	ns, name := req.Namespace, req.Name
	claims := Claims{ServiceAccount: sa, Audiences: req.Spec.Audiences,
		Lifetime: time.Duration(*req.Spec.ExpirationSeconds) * time.Second}
	if err := r.bind(ctx, &claims, ns, req.Spec.BoundObjectRef); err != nil {
		return nil, err
	}
	token, expiry, err := r.cfg.Issuer.Issue(ctx, claims)
	if err != nil {
		return nil, apierrors.NewInternalError(
			fmt.Errorf("failed to generate token for service account %s/%s: %w", ns, name, err))
	}
	req.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expiry)}
	return req, nil
}

func validateName(req *authenticationv1.TokenRequest, ns, name string) field.ErrorList {
	var errs field.ErrorList
	if req.Name != "" && req.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata").Child("name"), req.Name,
			"must match the service account name if specified"))
	}
	if req.Namespace != "" && req.Namespace != ns {
		errs = append(errs, field.Invalid(field.NewPath("metadata").Child("namespace"), req.Namespace,
			"must match the service account namespace if specified"))
	}
	return errs
}

func validateLifetime(seconds int64) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec").Child("expirationSeconds")
	if seconds < minSeconds {
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > maxSeconds {
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	return errs
}

// get reads one object from its store, fresh: a token must not be bound to what has gone.
func get[T runtime.Object](ctx context.Context, r *REST, resource, ns, name string) (T, error) {
	var none T
	obj, err := r.cfg.Stores.Store(schema.GroupResource{Resource: resource}).Get(ctx, ns, name)
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("reading %s %s/%s: got a %T", resource, ns, name, obj)
	}
	return typed, nil
}
