package bootstrapsigner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strings"
)

const (
	// content is the key of what is signed, signature the beginning of the keys of its signatures; a token's id follows.
	content   = "kubeconfig"
	signature = "jws-kubeconfig-"
)

// signed returns data with the signatures of the given tokens (secrets by ids), and no others. Without content nothing is signed.
func signed(data, tokens map[string]string) map[string]string {
	out := maps.Clone(data)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, signature) })
	if text, ok := data[content]; ok {
		for id, secret := range tokens {
			out[signature+id] = sign(text, id, secret)
		}
	}
	return out
}

// sign returns a JWS with HS256 whose content is left out (RFC 7515, appendix F). The token's secret is the key: with its 16 bytes it is
// too short for jose. Its id needs no quoting: it is part of its Secret's name.
func sign(text, id, secret string) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(header + "." + encode([]byte(text)))) // a hash takes all
	return header + ".." + encode(mac.Sum(nil))
}
