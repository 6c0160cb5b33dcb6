package tokens

import (
	"crypto/elliptic"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const (
	ask    = "GET /api/v1/namespaces/ns/serviceaccounts/robot"
	update = "PUT /api/v1/namespaces/ns/secrets/s1"
	remove = "DELETE /api/v1/namespaces/ns/secrets/s1"
)

// full is a Secret that lacks nothing.
func full() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "s1", UID: "secret-uid",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot", corev1.ServiceAccountUIDKey: "u1"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
		Data: map[string][]byte{"token": []byte("t"), "namespace": []byte("ns"), "ca.crt": []byte("CA")},
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	signer := must(NewSigner(pkcs8(ecKey(elliptic.P256()))))
	none := apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "robot")
	for _, c := range []struct {
		name      string
		change    func(*corev1.Secret)
		noAccount bool  // in the cache
		live      error // the server's answer about the account
		renewed   bool  // the server has another account of the name
		noSigner  bool
		want      []string
		fails     bool
	}{
		{name: "full"},
		{name: "new", change: func(s *corev1.Secret) {
			s.Data = nil
			delete(s.Annotations, corev1.ServiceAccountUIDKey)
		}, want: []string{ask, update}},
		{name: "no token", change: func(s *corev1.Secret) { delete(s.Data, "token") }, want: []string{update}},
		{name: "no token and no key to sign it", change: func(s *corev1.Secret) {
			delete(s.Data, "token")
		}, noSigner: true},
		{name: "no namespace", change: func(s *corev1.Secret) { delete(s.Data, "namespace") }, want: []string{update}},
		{name: "another CA", change: func(s *corev1.Secret) {
			s.Data["ca.crt"] = []byte("old")
		}, want: []string{update}},
		{name: "being deleted", change: func(s *corev1.Secret) { s.Data, s.DeletionTimestamp = nil, &now }},
		{name: "names no account", change: func(s *corev1.Secret) { s.Data, s.Annotations = nil, nil }},
		{name: "another type", change: func(s *corev1.Secret) { s.Data, s.Type = nil, corev1.SecretTypeOpaque }},
		{name: "earlier account of the name", change: func(s *corev1.Secret) {
			s.Annotations[corev1.ServiceAccountUIDKey] = "u0"
		}, want: []string{ask, remove}},
		{name: "the account's place was taken", change: func(s *corev1.Secret) {
			s.Annotations[corev1.ServiceAccountUIDKey] = "u2"
		}, renewed: true, want: []string{ask}},
		{name: "new, and so is the account", change: func(s *corev1.Secret) {
			s.Data = nil
			delete(s.Annotations, corev1.ServiceAccountUIDKey)
		}, renewed: true, want: []string{ask, update}},
		{name: "account gone", noAccount: true, live: none, want: []string{ask, remove}},
		{name: "account only late in the cache", noAccount: true, want: []string{ask}},
		{name: "account unknown", noAccount: true, live: apierrors.NewInternalError(none), want: []string{ask},
			fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if call.Name() == ask {
					sa := account()
					if c.renewed {
						sa.UID = "u2"
					}
					return sa, c.live
				}
				return call.Object, nil
			}}
			cfg := Config{Signer: signer, RootCA: []byte("CA")}
			if c.noSigner {
				cfg.Signer = nil
			}
			ctl := must(New(fake.Deps(t, time.Unix(0, 0)), cfg))
			s := full()
			if c.change != nil {
				c.change(s)
			}
			controllertest.Put(t, ctl.secrets, s)
			if !c.noAccount {
				controllertest.Put(t, ctl.accounts, account())
			}
			before := s.DeepCopy()
			if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(s)); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			if got := fake.Names(); !slices.Equal(got, c.want) {
				t.Fatalf("calls %v, want %v", got, c.want)
			}
			for _, call := range fake.Calls() {
				checkCall(t, call, before, c.renewed)
			}
			if len(before.Data) != len(s.Data) || !maps.Equal(before.Annotations, s.Annotations) {
				t.Error("the cached Secret was changed")
			}
		})
	}
}

// checkCall: what is written is full and for the account that the server has, keeps a token that was there, and what is
// deleted is this very Secret.
func checkCall(t *testing.T, call controllertest.Call, before *corev1.Secret, renewed bool) {
	uid := map[bool]string{false: "u1", true: "u2"}[renewed]
	switch o := call.Object.(type) {
	case *corev1.Secret:
		token := string(o.Data["token"])
		if old := before.Data["token"]; old != nil && token != string(old) ||
			old == nil && strings.Count(token, ".") != 2 {
			t.Errorf("token %q, was %q", token, old)
		}
		if string(o.Data["namespace"]) != "ns" || string(o.Data["ca.crt"]) != "CA" ||
			o.Annotations[corev1.ServiceAccountUIDKey] != uid {
			t.Errorf("wrote %q with %v", o.Data, o.Annotations)
		}
	case *metav1.DeleteOptions:
		if o.Preconditions == nil || *o.Preconditions.UID != "secret-uid" {
			t.Errorf("deleted with %+v: may hit another of that name", o.Preconditions)
		}
	}
}
