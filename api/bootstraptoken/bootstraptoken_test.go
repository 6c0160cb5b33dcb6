package bootstraptoken

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"testing/iotest"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	if got, err := Parse("abcdef.0123456789abcdef"); err != nil || got != (Token{"abcdef", "0123456789abcdef"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "abcdef", "Abcdef.0123456789abcdef", "abcdef.0123456789abcde",
		"abcdef.0123456789abcdef\n", "abcdef.0123456789abcdef."} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// TestNew: bytes that would make some letters likelier than others make none.
func TestNew(t *testing.T) {
	t.Parallel()
	made, err := New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(made.String()); err != nil {
		t.Error(err)
	}
	uneven := bytes.Repeat([]byte{252, 253, 254, 255, 0}, 100)
	if made, err = New(bytes.NewReader(uneven)); err != nil || made.String() != "aaaaaa.aaaaaaaaaaaaaaaa" {
		t.Errorf("%s, %v", made, err)
	}
	if _, err := New(iotest.ErrReader(errors.New("no random"))); err == nil {
		t.Error("made without random")
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	s := Token{"abcdef", "0123456789abcdef"}.Object("for n2",
		time.Date(2026, 11, 23, 4, 5, 6, 0, time.FixedZone("", 3600)))
	want := map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef",
		"expiration": "2026-11-23T03:05:06Z", "description": "for n2",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"}
	if len(s.Data) != len(want) || s.Name != "bootstrap-token-abcdef" || s.Namespace != "kube-system" ||
		s.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("%+v", s)
	}
	for key, value := range want {
		if string(s.Data[key]) != value {
			t.Errorf("%s is %q, not %q", key, s.Data[key], value)
		}
	}
	if s := (Token{}).Object("", time.Time{}); len(s.Data["expiration"])+len(s.Data["description"]) > 0 {
		t.Errorf("%+v", s.Data)
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	token := Token{"abcdef", "0123456789abcdef"}
	good := token.Sign("what is said")
	if !token.Signed("what is said", good) {
		t.Error("its own signature is none")
	}
	for _, c := range []struct {
		by            Token
		content, with string
	}{{token, "something else", good}, {Token{"abcdef", "0123456789abcdeg"}, "what is said", good},
		{token, "what is said", ""}} {
		if c.by.Signed(c.content, c.with) {
			t.Errorf("%+v", c)
		}
	}
}
