package oidc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// claims are those of a token, by their exact names. Whole numbers are int64, as CEL has them.
type claims map[string]any

func parseClaims(payload []byte) (claims, error) {
	var c map[string]any
	if err := utiljson.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %w", err)
	}
	return c, nil
}

// unambiguous fails if a claim looks like one that decides about the token and is another one. The verifier does not
// tell them apart: whoever may put claims of his own into tokens for another audience ("AUD") would make them good
// here.
func (c claims) unambiguous() error {
	for name := range c {
		for _, deciding := range []string{"iss", "aud", "exp", "nbf"} {
			if name != deciding && strings.EqualFold(name, deciding) {
				return fmt.Errorf("oidc: the claim %q looks like %q", name, deciding)
			}
		}
	}
	return nil
}

// text returns a claim that must be a string.
func (c claims) text(name string) (string, error) {
	v, ok := c[name]
	if !ok {
		return "", errors.New("claim not present")
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("json: cannot unmarshal %s into Go value of type string", kind(v))
	}
	return s, nil
}

// texts returns a claim that must be a string or a list of strings; nil if there is none.
func (c claims) texts(name string) ([]string, error) {
	switch v := c[name].(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		out := make([]string, 0, len(v))
		for _, one := range v {
			s, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("json: cannot unmarshal %s into Go value of type string", kind(one))
			}
			out = append(out, s)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("json: cannot unmarshal %s into Go value of type string", kind(v))
	}
}

// require fails if a claim has another value.
func (c claims) require(name, want string) error {
	if _, ok := c[name]; !ok {
		return fmt.Errorf("oidc: required claim %s not present in ID token", name)
	}
	got, err := c.text(name)
	if err != nil {
		return fmt.Errorf("oidc: parse claim %s: %w", name, err)
	}
	if got != want {
		return fmt.Errorf("oidc: required claim %s value does not match. Got = %s, want = %s", name, got, want)
	}
	return nil
}

// distributed reports whether a claim is not in the token: an address says where to get it.
func (c claims) distributed(name string) bool {
	names, ok := c["_claim_names"].(map[string]any)
	if !ok {
		return false
	}
	_, ok = names[name]
	return ok && c[name] == nil
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}

// issuerOf returns the "iss" of a token, which nobody has verified; ok is false if it is no signed JSON web token.
func issuerOf(token string) (iss string, ok bool) {
	payload, ok := segment(token)
	if !ok {
		return "", false
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return "", false
	}
	return c.Issuer, true
}

// segment decodes the second of the three parts of a token.
func segment(token string) ([]byte, bool) {
	_, rest, ok := strings.Cut(token, ".")
	if !ok {
		return nil, false
	}
	middle, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(middle)
	return payload, err == nil
}
