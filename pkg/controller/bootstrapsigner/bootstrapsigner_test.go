package bootstrapsigner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller/controllertest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func token(id string, more ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tokenNamespace, Name: "bootstrap-token-" + id},
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"),
			"usage-bootstrap-signing": []byte("true")}}
	for i := 0; i < len(more); i += 2 {
		s.Data[more[i]] = []byte(more[i+1])
	}
	return s
}

// TestReconcile: the signature is the one that a real controller manager v1.36.3 writes.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const good = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..vH_kT4yiol-nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE"
	misnamed := token("misnam")
	misnamed.Name = "misnamed"
	text := map[string]string{"kubeconfig": "apiVersion: v1\nkind: Config\n", "other": "z"}
	with := func(more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range text {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		data   map[string]string
		tokens []*corev1.Secret
		want   map[string]string // nil for no write
		again  time.Duration
	}{
		"new":            {with(), []*corev1.Secret{token("abcdef")}, with("jws-kubeconfig-abcdef", good), 0},
		"signed already": {with("jws-kubeconfig-abcdef", good), []*corev1.Secret{token("abcdef")}, nil, 0},
		"changed": {with("jws-kubeconfig-abcdef", "x..y"), []*corev1.Secret{token("abcdef")},
			with("jws-kubeconfig-abcdef", good), 0},
		"the token went": {with("jws-kubeconfig-abcdef", good), nil, with(), 0},
		"expires": {with(), []*corev1.Secret{token("abcdef", "expiration", "2026-01-02T04:04:05Z")},
			with("jws-kubeconfig-abcdef", good), time.Hour},
		"expired": {with("jws-kubeconfig-abcdef", good),
			[]*corev1.Secret{token("abcdef", "expiration", "2026-01-02T03:04:05Z")}, with(), 0},
		"no date":         {with(), []*corev1.Secret{token("abcdef", "expiration", "tomorrow")}, nil, 0},
		"not for signing": {with(), []*corev1.Secret{token("abcdef", "usage-bootstrap-signing", "false")}, nil, 0},
		"of another name": {with(), []*corev1.Secret{misnamed}, nil, 0},
		"nothing to sign": {map[string]string{"jws-kubeconfig-abcdef": good}, []*corev1.Secret{token("abcdef")},
			map[string]string{}, 0},
		"without a secret": {with(), []*corev1.Secret{token("abcdef", "token-secret", "")}, nil, 0},
	} {
		fake := &controllertest.Fake{}
		ctl, err := New(fake.Deps(t, now))
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.configs,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: configName,
				ResourceVersion: "3"}, Data: c.data})
		controllertest.Put(t, ctl.secrets, c.tokens...)
		res, err := ctl.Reconcile(t.Context(), key())
		if err != nil || res.RequeueAfter != c.again {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if c.want == nil {
			if len(fake.Calls()) > 0 {
				t.Errorf("%s: %v", name, fake.Names())
			}
			continue
		}
		if got := fake.Names(); !slices.Equal(got,
			[]string{"PUT /api/v1/namespaces/kube-public/configmaps/cluster-info"}) {
			t.Fatalf("%s: %v", name, got)
		}
		m := fake.Calls()[0].Object.(*corev1.ConfigMap)
		if fmt.Sprint(m.Data) != fmt.Sprint(c.want) || m.ResourceVersion != "3" {
			t.Errorf("%s: %v, want %v", name, m.Data, c.want)
		}
	}
}
