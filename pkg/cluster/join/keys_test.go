package join

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// TestTakeKeys: a control plane of the same cluster opens what another one has published, and nobody else; what does
// not open changes nothing.
func TestTakeKeys(t *testing.T) {
	t.Parallel()
	machine := func() plan.Config { return plan.Default(t.TempDir(), "") }
	first, second, stranger := machine(), machine(), machine()
	for _, c := range []plan.Config{first, stranger} {
		if err := pki.Make(c, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	authority, err := os.ReadFile(first.Layout().PKI("etcd-ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(second.Layout().PKI("etcd-ca.key"), authority); err != nil {
		t.Fatal(err)
	}
	key, err := keysKey(first)
	if err != nil {
		t.Fatal(err)
	}
	const text = "the keys"
	sealed, err := key.encrypt([]byte(text))
	if err != nil || strings.Contains(string(sealed), text) {
		t.Fatalf("%q, %v", sealed, err)
	}
	s := &corev1.Secret{Data: map[string][]byte{encryptionEntry: sealed}}
	if err := takeKeys(second, s); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(second.Layout().Encryption()); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
	empty, err := key.encrypt(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"nothing": nil, "no text": empty, "other": sealed[1:],
		"plain": []byte(text)} {
		if err := takeKeys(second, &corev1.Secret{Data: map[string][]byte{encryptionEntry: data}}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if got, err := os.ReadFile(second.Layout().Encryption()); err != nil || string(got) != text {
		t.Errorf("afterwards: %q, %v", got, err)
	}
	if err := takeKeys(stranger, s); err == nil || host.StatError(stranger.Layout().Encryption()) == nil {
		t.Errorf("another cluster took the keys (%v)", err)
	}
}

// TestReplayedKeys: a Secret of before, which the same control plane has sealed, does not bring earlier keys back.
func TestReplayedKeys(t *testing.T) {
	t.Parallel()
	c := plan.Default(t.TempDir(), "")
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := keysKey(c)
	if err != nil {
		t.Fatal(err)
	}
	seal := func(text string) *corev1.Secret {
		sealed, err := key.encrypt([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Secret{Data: map[string][]byte{encryptionEntry: sealed}}
	}
	const old, newest = "# generation: 1\nold\n", "# generation: 2\nnewest\n"
	replay := seal(old)
	for _, s := range []*corev1.Secret{replay, seal(newest)} {
		if err := takeKeys(c, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := takeKeys(c, replay); err == nil || !strings.Contains(err.Error(), "generation 1 and not newer") {
		t.Error(err)
	}
	if got, err := os.ReadFile(c.Layout().Encryption()); err != nil || string(got) != newest {
		t.Errorf("%q, %v", got, err)
	}
}
