package oidc

import (
	"errors"

	"bonsai/pkg/apiserver/configfile"
)

// Parse reads a file strictly. Its errors name fields.
func Parse(text []byte) (*Configuration, error) {
	if len(text) == 0 {
		return nil, errors.New("empty config data")
	}
	var c Configuration
	if err := configfile.Decode(text, "AuthenticationConfiguration", &c); err != nil {
		return nil, err
	}
	return &c, nil
}
