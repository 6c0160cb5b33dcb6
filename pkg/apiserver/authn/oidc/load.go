package oidc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// maxConfiguration bounds a file, in bytes.
const maxConfiguration = 1 << 20

// group is the API group of the file.
const group = "apiserver.config.k8s.io"

// Parse reads a file strictly. Its errors name fields.
func Parse(text []byte) (*Configuration, error) {
	if len(text) == 0 {
		return nil, errors.New("empty config data")
	}
	if err := docbounds.YAML(text, docbounds.Bounds{Bytes: maxConfiguration, Values: 20_000, Depth: 50}); err != nil {
		return nil, err
	}
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, runtime.NewStrictDecodingError([]error{err})
	}
	if err := named(doc, text); err != nil {
		return nil, err
	}
	var c Configuration
	strict, err := sigsjson.UnmarshalStrict(doc, &c)
	if err != nil {
		return nil, err
	}
	versions := []string{group + "/v1", group + "/v1beta1", group + "/v1alpha1"}
	if c.Kind != "AuthenticationConfiguration" || !slices.Contains(versions, c.APIVersion) {
		return nil, fmt.Errorf("no kind %q is registered for version %q: it must be of kind AuthenticationConfiguration of %s",
			c.Kind, c.APIVersion, versions[0])
	}
	if len(strict) > 0 {
		return nil, runtime.NewStrictDecodingError(strict)
	}
	return &c, nil
}

// named fails if a document does not say what it is.
func named(doc, text []byte) error {
	var of metav1.TypeMeta
	if err := json.Unmarshal(doc, &of); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	switch {
	case of.Kind == "":
		return runtime.NewMissingKindErr(string(text))
	case of.APIVersion == "":
		return runtime.NewMissingVersionErr(string(text))
	}
	return nil
}
