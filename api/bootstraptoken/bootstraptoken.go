// Package bootstraptoken defines the tokens with which nodes join a cluster: their format, the Secrets of kube-system
// that hold them, and the signatures by which a joining node trusts the cluster-info ConfigMap
// (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/).
package bootstraptoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keys of a token's Secret. An expiration is RFC 3339, none is never; usages are "true"; groups are separated by
// commas.
const (
	SecretPrefix      = "bootstrap-token-"
	KeyID             = "token-id"
	KeySecret         = "token-secret"
	KeyExpiration     = "expiration"
	KeyDescription    = "description"
	KeyGroups         = "auth-extra-groups"
	KeyAuthentication = "usage-bootstrap-authentication"
	KeySigning        = "usage-bootstrap-signing"
	DefaultNodeGroup  = "system:bootstrappers:kubeadm:default-node-token" // what kubeadm gives to those who join
	// the ConfigMap of kube-public that is signed
	ClusterInfo        = "cluster-info"
	ClusterInfoContent = "kubeconfig" // its key with what is signed
	// begins its keys of signatures; a token's id follows
	ClusterInfoSignedBy = "jws-kubeconfig-"
)

// What tokens are made of.
const (
	letters                = "abcdefghijklmnopqrstuvwxyz0123456789"
	idLength, secretLength = 6, 16
)

// Token is an id, which is no secret, and a secret.
type Token struct{ ID, Secret string }

// Parse reads id.secret, of 6 and 16 lower-case letters and digits.
func Parse(text string) (Token, error) {
	id, secret, _ := strings.Cut(text, ".")
	strange := func(r rune) bool { return !strings.ContainsRune(letters, r) }
	if len(id) != idLength || len(secret) != secretLength || strings.ContainsFunc(id+secret, strange) {
		return Token{}, fmt.Errorf("%q is no bootstrap token of the form abcdef.0123456789abcdef", text)
	}
	return Token{id, secret}, nil
}

// New makes a token of what random says.
func New(random io.Reader) (Token, error) {
	var text []byte
	for buffer := make([]byte, 64); len(text) < idLength+secretLength; {
		if _, err := io.ReadFull(random, buffer); err != nil {
			return Token{}, fmt.Errorf("make a token: %w", err)
		}
		for _, b := range buffer {
			if n := len(letters); int(b) < 256/n*n { // each letter as likely as any other
				text = append(text, letters[int(b)%n])
			}
		}
	}
	return Token{string(text[:idLength]), string(text[idLength : idLength+secretLength])}, nil
}

func (t Token) String() string { return t.ID + "." + t.Secret }

// Object is the Secret of a token that lets nodes join until it expires; the zero time is never.
func (t Token) Object(description string, expires time.Time) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: SecretPrefix + t.ID},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{KeyID: []byte(t.ID), KeySecret: []byte(t.Secret), KeyAuthentication: []byte("true"),
			KeySigning: []byte("true"),
			KeyGroups:  []byte(DefaultNodeGroup)},
	}
	if description != "" {
		s.Data[KeyDescription] = []byte(description)
	}
	if !expires.IsZero() {
		s.Data[KeyExpiration] = []byte(expires.UTC().Format(time.RFC3339))
	}
	return s
}

// Sign returns a JWS with HS256 whose content is left out (RFC 7515, appendix F). The token's secret is the key: with
// its 16 bytes it is too short for jose. Its id needs no quoting.
func (t Token) Sign(content string) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode([]byte(`{"alg":"HS256","kid":"` + t.ID + `"}`))
	mac := hmac.New(sha256.New, []byte(t.Secret))
	mac.Write([]byte(header + "." + encode([]byte(content)))) // a hash takes all
	return header + ".." + encode(mac.Sum(nil))
}

// Signed reports whether signature is the token's under content.
func (t Token) Signed(content, signature string) bool {
	return subtle.ConstantTimeCompare([]byte(t.Sign(content)), []byte(signature)) == 1
}
