package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// Paths of the OpenID discovery documents that let others check our tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	JWKSPath          = "/openid/v1/jwks"
)

// Discovery returns the handlers of ConfigurationPath and JWKSPath for tokens of issuer with keys. jwksURI is where the
// keys are found from outside (--service-account-jwks-uri, or the server's own address and JWKSPath).
func Discovery(issuer, jwksURI string, keys []PublicKey) (configuration, jwks http.Handler, err error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	algs := []string{}
	for _, k := range keys {
		set.Keys = append(set.Keys,
			jose.JSONWebKey{Key: k.Key, KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"})
		if !slices.Contains(algs, string(k.Algorithm)) {
			algs = append(algs, string(k.Algorithm))
		}
	}
	keysJSON, err := json.Marshal(set)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the token keys: %w", err)
	}
	configJSON, err := json.Marshal(struct {
		Issuer   string   `json:"issuer"`
		JWKSURI  string   `json:"jwks_uri"`
		Types    []string `json:"response_types_supported"`
		Subjects []string `json:"subject_types_supported"`
		Algs     []string `json:"id_token_signing_alg_values_supported"`
	}{issuer, jwksURI, []string{"id_token"}, []string{"public"}, algs})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the OpenID configuration: %w", err)
	}
	return document("application/json", configJSON), document("application/jwk-set+json", keysJSON), nil
}

func document(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body)
	})
}
