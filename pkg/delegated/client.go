package delegated

import (
	"context"
	"fmt"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// askTimeout is how long a request to the API server may take.
const askTimeout = 10 * time.Second

// Client asks the API server. It knows three kinds and no more: a generated clientset would be most of an idle component.
type Client struct{ core, authn, authz rest.Interface }

var (
	_ TokenReviewer  = (*Client)(nil)
	_ AccessReviewer = (*Client)(nil)
	_ ClientCAReader = (*Client)(nil)
)

// NewClient returns a client with the identity of config; nothing is sent yet.
func NewClient(config *rest.Config) (*Client, error) {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	s.AddKnownTypes(authnv1.SchemeGroupVersion, &authnv1.TokenReview{})
	s.AddKnownTypes(authzv1.SchemeGroupVersion, &authzv1.SubjectAccessReview{})
	cfg := rest.CopyConfig(config)
	cfg.QPS, cfg.RateLimiter, cfg.Timeout = -1, nil, askTimeout
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("build the HTTP client for %s: %w", cfg.Host, err)
	}
	c := &Client{}
	for _, group := range []struct {
		version schema.GroupVersion
		path    string
		to      *rest.Interface
	}{
		{corev1.SchemeGroupVersion, "/api", &c.core}, {authnv1.SchemeGroupVersion, "/apis", &c.authn}, {authzv1.SchemeGroupVersion, "/apis", &c.authz},
	} {
		g := rest.CopyConfig(cfg)
		g.GroupVersion, g.APIPath = &group.version, group.path
		if *group.to, err = rest.RESTClientForConfigAndClient(g, http); err != nil {
			return nil, fmt.Errorf("build the client for %s: %w", group.version, err)
		}
	}
	return c, nil
}

// ReviewToken implements TokenReviewer.
func (c *Client) ReviewToken(ctx context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error) {
	out := &authnv1.TokenReview{}
	return out, c.authn.Post().Resource("tokenreviews").Body(r).Do(ctx).Into(out)
}

// ReviewAccess implements AccessReviewer.
func (c *Client) ReviewAccess(ctx context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview, error) {
	out := &authzv1.SubjectAccessReview{}
	return out, c.authz.Post().Resource("subjectaccessreviews").Body(r).Do(ctx).Into(out)
}

// PublishedClientCA implements ClientCAReader: the API server keeps what is in its --client-ca-file in the ConfigMap
// extension-apiserver-authentication of kube-system.
func (c *Client) PublishedClientCA(ctx context.Context) ([]byte, error) {
	const name, key = "extension-apiserver-authentication", "client-ca-file"
	found := &corev1.ConfigMap{}
	if err := c.core.Get().Namespace(metav1.NamespaceSystem).Resource("configmaps").Name(name).Do(ctx).Into(found); err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s/%s: %w", metav1.NamespaceSystem, name, err)
	}
	pem, ok := found.Data[key]
	if !ok {
		return nil, fmt.Errorf("the ConfigMap %s/%s has no %s", metav1.NamespaceSystem, name, key)
	}
	return []byte(pem), nil
}
