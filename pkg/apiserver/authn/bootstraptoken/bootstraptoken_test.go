package bootstraptoken

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/request"
)

// secrets is the watch cache; the newest state is never asked for.
type secrets struct {
	t   *testing.T
	all map[string]*corev1.Secret
}

func (s secrets) Get(context.Context, string, string) (runtime.Object, error) {
	s.t.Error("a stranger's token was looked for in etcd")
	return nil, nil
}

func (s secrets) GetCached(_ context.Context, ns, name string) (runtime.Object, error) {
	if obj := s.all[ns+"/"+name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func TestAuthenticateToken(t *testing.T) {
	t.Parallel()
	const token = "abcdef.0123456789abcdef"
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		token  string
		groups []string // nil: nobody
	}{
		"good": {nil, token, []string{"system:bootstrappers"}},
		"with groups": {func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte("system:bootstrappers:a:b,system:bootstrappers:c")
		}, token, []string{"system:bootstrappers", "system:bootstrappers:a:b", "system:bootstrappers:c"}},
		"a group not allowed": {func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte("system:masters")
		}, token, nil},
		"another secret":    {nil, "abcdef.0123456789abcdee", nil},
		"another id":        {nil, "abcdee.0123456789abcdef", nil},
		"no token":          {nil, "abcdef.0123456789abcdef0", nil},
		"upper case":        {nil, "ABCDEF.0123456789abcdef", nil},
		"another id inside": {func(s *corev1.Secret) { s.Data["token-id"] = []byte("abcdee") }, token, nil},
		"another type":      {func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, token, nil},
		"for signing only": {func(s *corev1.Secret) {
			delete(s.Data, "usage-bootstrap-authentication")
		}, token, nil},
		"being deleted": {func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }, token, nil},
		"to expire": {func(s *corev1.Secret) {
			s.Data["expiration"] = []byte("2026-01-02T03:04:06Z")
		}, token, []string{"system:bootstrappers"}},
		"expired": {func(s *corev1.Secret) {
			s.Data["expiration"] = []byte("2026-01-02T03:04:05Z")
		}, token, nil},
		"an unreadable ending": {func(s *corev1.Secret) { s.Data["expiration"] = []byte("soon") }, token, nil},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"},
			Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{
				"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"),
				"usage-bootstrap-authentication": []byte("true")}}
		if c.change != nil {
			c.change(s)
		}
		a := New(secrets{t, map[string]*corev1.Secret{"kube-system/bootstrap-token-abcdef": s}}, func() time.Time {
			return now
		})
		got, _, err := a.AuthenticateToken(t.Context(), c.token, nil)
		var want *request.User
		if c.groups != nil {
			want = &request.User{Name: "system:bootstrap:abcdef", Groups: c.groups}
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}
