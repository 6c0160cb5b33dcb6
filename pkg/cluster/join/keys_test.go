package join

import (
	"errors"
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
	into := func(c plan.Config) func([]byte) error {
		return func(text []byte) error { return host.WriteFile(c.Layout().Encryption(), text) }
	}
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
	if err := takeKeys(second, s, into(second)); err != nil {
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
		s := &corev1.Secret{Data: map[string][]byte{encryptionEntry: data}}
		if err := takeKeys(second, s, into(second)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if got, err := os.ReadFile(second.Layout().Encryption()); err != nil || string(got) != text {
		t.Errorf("afterwards: %q, %v", got, err)
	}
	err = takeKeys(stranger, s, into(stranger))
	if err == nil || host.StatError(stranger.Layout().Encryption()) == nil {
		t.Errorf("another cluster took the keys (%v)", err)
	}
}

// TestRefusedKeys: a file that opens, but is not to be taken, such as one that was published before, is an error that
// names the Secret.
func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	c := plan.Default(t.TempDir(), "")
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := keysKey(c)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.encrypt([]byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not newer")
	err = takeKeys(c, &corev1.Secret{Data: map[string][]byte{encryptionEntry: sealed}}, func(text []byte) error {
		if string(text) != "old" {
			t.Errorf("%q", text)
		}
		return refused
	})
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), keysSecret) {
		t.Error(err)
	}
}
