package tokens

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	corev1 "k8s.io/api/core/v1"
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
	alg, err := algorithm(key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	jws, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{
		Algorithm: string(alg), Key: key, KeyID: base64.RawURLEncoding.EncodeToString(sum[:]), Use: "sig",
	}}, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the signer: %w", err)
	}
	return &Signer{jws}, nil
}

func parseKey(keyPEM []byte) (crypto.Signer, error) {
	var found []string
	for block, rest := pem.Decode(keyPEM); block != nil; block, rest = pem.Decode(rest) {
		if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return k, nil
		}
		if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return k, nil
		}
		if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if s, ok := k.(crypto.Signer); ok {
				return s, nil
			}
		}
		found = append(found, block.Type)
	}
	if len(found) == 0 {
		return nil, errors.New("no RSA or ECDSA private key found: the data has no PEM block")
	}
	return nil, fmt.Errorf("no RSA or ECDSA private key found: no readable one in the PEM blocks %q", found)
}

func algorithm(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
		return "", fmt.Errorf("unsupported elliptic curve %s, want P-256, P-384 or P-521", k.Curve.Params().Name)
	}
	return "", fmt.Errorf("unsupported key type %T, want RSA or ECDSA", key)
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
