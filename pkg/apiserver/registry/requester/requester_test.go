package requester

import (
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/pkg/apiserver/request"
)

func TestBeforeCreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user *request.User
		want string
	}{
		{&request.User{Name: "bob", UID: "7", Groups: []string{"devs"}, Extra: map[string][]string{"k": {"v"}}},
			"bob 7 [devs] map[k:[v]]"},
		{&request.User{Name: "bob"}, "bob  [] map[]"},
		{nil, "  [] map[]"},
	} {
		r := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: "admin", UID: "1", Groups: []string{"system:masters"},
			Extra: map[string]certificatesv1.ExtraValue{"a": {"b"}}}}
		ctx := t.Context()
		if c.user != nil {
			ctx = request.WithUser(ctx, c.user)
		}
		done, err := Hook{}.BeforeCreate(ctx, r, false)
		if err != nil || done == nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Spec.Username, " ", r.Spec.UID, " ", r.Spec.Groups, " ", r.Spec.Extra); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
