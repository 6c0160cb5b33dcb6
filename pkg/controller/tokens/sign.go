package tokens

import (
	"crypto"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/tokenkey"
)

// claims is the content of a token that is bound to its Secret and never expires.
type claims struct {
	Issuer     string `json:"iss"`
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name"`
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid"`
	Subject    string `json:"sub"`
}

// issuer is the fixed name in the tokens of Secrets.
const issuer = "kubernetes/serviceaccount"

func claimsFor(sa *corev1.ServiceAccount, s *corev1.Secret) claims {
	return claims{
		Issuer: issuer, Namespace: sa.Namespace, Secret: s.Name, Account: sa.Name, AccountUID: string(sa.UID),
		Subject: "system:serviceaccount:" + sa.Namespace + ":" + sa.Name,
	}
}

// Signer signs tokens with the cluster's service account key.
type Signer struct{ jws jose.Signer }

// NewSigner reads a PEM private key, RSA or ECDSA.
func NewSigner(keyPEM []byte) (*Signer, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	alg, id, err := tokenkey.Describe(key.Public())
	if err != nil {
		return nil, err
	}
	jws, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{
		Algorithm: string(alg), Key: key, KeyID: id, Use: "sig",
	}}, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the signer: %w", err)
	}
	return &Signer{jws}, nil
}

func parseKey(keyPEM []byte) (crypto.Signer, error) {
	var found []string
	for block, rest := pem.Decode(keyPEM); block != nil; block, rest = pem.Decode(rest) {
		if k, err := tokenkey.ParsePrivate(block); err == nil {
			return k, nil
		}
		found = append(found, block.Type)
	}
	if len(found) == 0 {
		return nil, errors.New("no RSA or ECDSA private key found: the data has no PEM block")
	}
	return nil, fmt.Errorf("no RSA or ECDSA private key found: no readable one in the PEM blocks %q", found)
}

// Sign returns the claims as a compact JWS.
func (s *Signer) Sign(c claims) (string, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := s.jws.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
