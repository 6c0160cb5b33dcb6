package token_test

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/registry/registrytest"
	"bonsai/pkg/apiserver/registry/token"
)

// signer notes what it was asked to sign.
type signer struct{ claims token.Claims }

func (s *signer) Issue(_ context.Context, c token.Claims) (string, time.Time, error) {
	s.claims = c
	return "signed", time.Unix(5000, 0), nil
}

func request(t *testing.T, spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, token.Claims,
	error) {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "default"} }
	s := &signer{}
	r, err := token.New(token.Config{Issuer: s, Audiences: []string{"api"}, Now: func() time.Time {
		return time.Unix(1000, 0)
	}, Stores: registrytest.Stores{
		registrytest.Of(t, "serviceaccounts", &corev1.ServiceAccount{ObjectMeta: meta("sa")}),
		registrytest.Of(t, "pods",
			&corev1.Pod{ObjectMeta: meta("mine"), Spec: corev1.PodSpec{ServiceAccountName: "sa", NodeName: "n1"}},
			&corev1.Pod{ObjectMeta: meta("gone"), Spec: corev1.PodSpec{ServiceAccountName: "sa", NodeName: "n0"}},
			&corev1.Pod{ObjectMeta: meta("other"), Spec: corev1.PodSpec{ServiceAccountName: "x"}}),
		registrytest.Of(t, "secrets", &corev1.Secret{ObjectMeta: meta("sec")}),
		registrytest.Of(t, "nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Create(t.Context(), "default", "sa", &authenticationv1.TokenRequest{Spec: spec}, nil)
	if err != nil {
		return nil, s.claims, err
	}
	return out.(*authenticationv1.TokenRequest), s.claims, nil
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	out, c, err := request(t, authenticationv1.TokenRequestSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Lifetime != time.Hour || len(c.Audiences) != 1 || c.Audiences[0] != "api" || c.ServiceAccount.UID != "uid-sa" {
		t.Errorf("claims %+v", c)
	}
	if out.Status.Token != "signed" || out.Status.ExpirationTimestamp.Unix() != 5000 || out.Name != "sa" ||
		*out.Spec.ExpirationSeconds != 3600 {
		t.Errorf("answer %+v", out)
	}
}

func TestBoundObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, object, uid string
		refused                 func(error) bool
		node                    string
	}{
		{name: "pod", kind: "Pod", object: "mine", uid: "uid-mine", node: "uid-n1"},
		{name: "pod on a node that is gone", kind: "Pod", object: "gone"},
		{name: "pod of another UID", kind: "Pod", object: "mine", uid: "old", refused: apierrors.IsConflict},
		{name: "pod of another account", kind: "Pod", object: "other", refused: apierrors.IsBadRequest},
		{name: "no such pod", kind: "Pod", object: "x", refused: apierrors.IsNotFound},
		{name: "secret", kind: "Secret", object: "sec", uid: "uid-sec"},
		{name: "node", kind: "Node", object: "n1", node: "uid-n1"},
		{name: "a kind that binds nothing", kind: "ConfigMap", object: "x", refused: apierrors.IsBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ref := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: c.kind, Name: c.object,
				UID: types.UID(c.uid)}
			_, claims, err := request(t, authenticationv1.TokenRequestSpec{BoundObjectRef: ref})
			if c.refused != nil {
				if !c.refused(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.node != "" && (claims.Node == nil || string(claims.Node.UID) != c.node) {
				t.Errorf("node %+v", claims.Node)
			}
		})
	}
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	for seconds, ok := range map[int64]bool{599: false, 600: true, 1 << 32: true, 1<<32 + 1: false} {
		if _, _, err := request(t,
			authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}); ok != (err == nil) ||
			!ok && !apierrors.IsInvalid(err) {
			t.Errorf("%d s: %v", seconds, err)
		}
	}
}
