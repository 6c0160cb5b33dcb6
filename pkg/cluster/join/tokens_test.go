package join

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/bootstraptoken"
)

// TestPrintTokens: the columns and words are kubeadm's.
func TestPrintTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	old := bootstraptoken.Token{ID: "bbbbbb", Secret: "0123456789abcdef"}.Object("", now.Add(-time.Hour))
	delete(old.Data, bootstraptoken.KeySigning)
	delete(old.Data, bootstraptoken.KeyGroups)
	var out bytes.Buffer
	if err := printTokens(&out,
		[]*corev1.Secret{old, bootstraptoken.Token{ID: "cccccc", Secret: "0123456789abcdef"}.Object("", time.Time{}),
			bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdef"}.Object("mine", now.Add(90*time.Minute))},
		now); err != nil {
		t.Fatal(err)
	}
	want := `TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION   EXTRA GROUPS
aaaaaa.0123456789abcdef   1h30m0s     2026-11-23T04:30:00Z   authentication,signing   mine          system:bootstrappers:kubeadm:default-node-token
bbbbbb.0123456789abcdef   <invalid>   2026-11-23T02:00:00Z   authentication           <none>        <none>
cccccc.0123456789abcdef   <forever>   <never>                authentication,signing   <none>        system:bootstrappers:kubeadm:default-node-token
`
	if out.String() != want {
		t.Errorf("%s\nnot\n%s", &out, want)
	}
}
