// Package live reads the objects of a why.World from an API server, of any make, with the caller's rights.
package live

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"bonsai/pkg/why"
)

// Bounds of a list: objects in a page, and pages. A question about a larger cluster is answered by what was read, and
// the answer says so.
const (
	pageSize = 500
	maxPages = 200
)

// Source reads from an API server.
type Source struct {
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	// Core is a client of the core group's v1, for logs.
	Core rest.Interface
}

var _ why.Source = (*Source)(nil)

func (s *Source) resource(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.Dynamic.Resource(r)
	}
	return s.Dynamic.Resource(r).Namespace(namespace)
}

// Get implements why.Source.
func (s *Source) Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (
	*unstructured.Unstructured, error) {
	return s.resource(r, namespace).Get(ctx, name, metav1.GetOptions{})
}

// List implements why.Source.
func (s *Source) List(ctx context.Context, r schema.GroupVersionResource, namespace string) (
	items []unstructured.Unstructured, more bool, err error) {
	return s.pages(ctx, s.resource(r, namespace), metav1.ListOptions{Limit: pageSize})
}

func (s *Source) pages(ctx context.Context, r dynamic.ResourceInterface, o metav1.ListOptions) (
	items []unstructured.Unstructured, more bool, err error) {
	for range maxPages {
		list, err := r.List(ctx, o)
		if err != nil {
			return nil, false, err
		}
		items = append(items, list.Items...)
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return items, false, nil
		}
	}
	return items, true, nil
}

// Events implements why.Source.
func (s *Source) Events(ctx context.Context, o why.Object) ([]unstructured.Unstructured, error) {
	selector := fields.Set{"involvedObject.kind": o.Kind, "involvedObject.name": o.Name}
	if o.Namespace != "" {
		selector["involvedObject.namespace"] = o.Namespace
	}
	items, _, err := s.pages(ctx, s.resource(corev1.SchemeGroupVersion.WithResource("events"),
		cmp.Or(o.Namespace, metav1.NamespaceDefault)),
		metav1.ListOptions{Limit: pageSize, FieldSelector: selector.AsSelector().String()})
	return items, err
}

// logTimeout bounds the wait for a log: the server asks the kubelet, which may be gone.
const logTimeout = 5 * time.Second

// Log implements why.Source. The server's own bound on bytes would cut the end off, and the newest lines matter: the
// server bounds the lines, and the bytes are bounded here.
func (s *Source) Log(ctx context.Context, l why.Log) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	body, err := s.Core.Get().Namespace(l.Namespace).Resource("pods").Name(l.Pod).SubResource("log").
		VersionedParams(&corev1.PodLogOptions{Container: l.Container, Previous: l.Previous,
			TailLines: ptr.To(int64(why.LogLines))}, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	return tail(body, why.LogBytes)
}

// tail returns the last bytes of what r has, at most twice as many, and holds no more at a time. Of a longer body than
// maxLogBody it is the end of that part.
func tail(r io.Reader, most int) (string, error) {
	const maxLogBody = 16 << 20
	r = io.LimitReader(r, maxLogBody)
	var kept []byte
	chunk := make([]byte, most)
	for {
		n, err := io.ReadFull(r, chunk)
		kept = append(kept[max(len(kept)-most, 0):], chunk[:n]...)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return string(kept), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Mapping implements why.Source.
func (s *Source) Mapping(group, kind string) (schema.GroupVersionResource, error) {
	m, err := s.Mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return m.Resource, nil
}

// Resource implements why.Source.
func (s *Source) Resource(group, resource string) (schema.GroupVersionResource, error) {
	return s.Mapper.ResourceFor(schema.GroupVersionResource{Group: group, Resource: resource})
}

// Version implements why.Source.
func (s *Source) Version(r schema.GroupVersionResource) string {
	if _, err := s.Mapper.ResourceFor(r); err == nil {
		return r.Version
	}
	other, err := s.Mapper.ResourceFor(r.GroupResource().WithVersion(""))
	if err != nil {
		return ""
	}
	return other.Version
}

// Self implements why.Source.
func (s *Source) Self(ctx context.Context) (user string, groups []string, err error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
	out, err := s.Dynamic.Resource(authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")).
		Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return "", nil, err
	}
	user, _, _ = unstructured.NestedString(out.Object, "status", "userInfo", "username")
	groups, _, _ = unstructured.NestedStringSlice(out.Object, "status", "userInfo", "groups")
	return user, groups, nil
}

// Apply implements why.Source.
func (s *Source) Apply(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured, manager string,
) error {
	_, err := s.resource(r, u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager,
		DryRun: []string{metav1.DryRunAll}})
	return err
}

// Allowed implements why.Source. Questions about others need the right to create SubjectAccessReviews.
func (s *Source) Allowed(ctx context.Context, a why.Access) (bool, string, error) {
	attributes := &authorizationv1.ResourceAttributes{Namespace: a.Namespace, Verb: a.Verb, Group: a.Group,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}
	var path *authorizationv1.NonResourceAttributes
	if a.Path != "" {
		attributes, path = nil, &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
	}
	var review any = &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes, NonResourceAttributes: path}}
	kind, resource := "SelfSubjectAccessReview", "selfsubjectaccessreviews"
	if a.User != "" {
		review = &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: attributes, NonResourceAttributes: path, User: a.User, Groups: a.Groups}}
		kind, resource = "SubjectAccessReview", "subjectaccessreviews"
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, "", fmt.Errorf("encoding a %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind(kind))
	out, err := s.Dynamic.Resource(authorizationv1.SchemeGroupVersion.WithResource(resource)).
		Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return false, "", err
	}
	allowed, _, _ := unstructured.NestedBool(out.Object, "status", "allowed")
	reason, _, _ := unstructured.NestedString(out.Object, "status", "reason")
	return allowed, reason, nil
}
