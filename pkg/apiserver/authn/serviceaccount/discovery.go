package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-jose/go-jose/v4"
)

// Paths of the OpenID discovery documents that let others check our tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	JWKSPath          = "/openid/v1/jwks"
)

// Discovery returns the handlers of ConfigurationPath and JWKSPath for tokens of issuer with keys. jwksURI is where the
// keys are found from outside (--service-account-jwks-uri, or the server's own address and JWKSPath).
func Discovery(issuer, jwksURI string, keys Keys) (configuration, jwks http.Handler) {
	return document("application/json", keys, func(published []PublicKey) any {
			return struct {
				Issuer   string                    `json:"issuer"`
				JWKSURI  string                    `json:"jwks_uri"`
				Types    []string                  `json:"response_types_supported"`
				Subjects []string                  `json:"subject_types_supported"`
				Algs     []jose.SignatureAlgorithm `json:"id_token_signing_alg_values_supported"`
			}{issuer, jwksURI, []string{"id_token"}, []string{"public"}, algorithms(published)}
		}), document("application/jwk-set+json", keys, func(published []PublicKey) any {
			set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
			for _, k := range published {
				set.Keys = append(set.Keys,
					jose.JSONWebKey{Key: k.Key, KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"})
			}
			return set
		})
}

// document serves what content returns for the keys that are published.
func document(contentType string, keys Keys, content func([]PublicKey) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		published, maxAge := keys.Published()
		body, err := json.Marshal(content(published))
		if err != nil {
			http.Error(w, "the keys of service account tokens cannot be encoded", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", maxAge))
		_, _ = w.Write(body)
	})
}
