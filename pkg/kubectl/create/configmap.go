package create

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// configMap is "create configmap": text goes to data, other content to binaryData.
func configMap() kind {
	var s sources
	return kind{
		use:     "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none]",
		aliases: []string{"cm"},
		short:   "Create a config map from a local file, directory or literal value",
		long:    "Create a config map based on a file, directory, or specified literal value.",
		example: "  # Create a new config map named my-config with key1=config1 and key2=config2\n  kubectl create configmap my-config --from-literal=key1=config1 --from-literal=key2=config2",
		failed:  "failed to create configmap: ",
		flags:   s.add,
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			entries, err := s.entries()
			if err != nil {
				return nil, err
			}
			c := &corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: g.meta()}
			for _, e := range entries {
				if err := addToConfigMap(c, e); err != nil {
					return nil, err
				}
			}
			if s.hash {
				suffix, err := configMapHash(c)
				if err != nil {
					return nil, err
				}
				c.Name += suffix
			}
			return c, nil
		},
	}
}

func addToConfigMap(c *corev1.ConfigMap, e entry) error {
	if errs := validation.IsConfigMapKey(e.key); len(errs) > 0 {
		return fmt.Errorf("%q is not a valid key name for a ConfigMap: %s", e.key, strings.Join(errs, ","))
	}
	if _, ok := c.Data[e.key]; ok {
		return fmt.Errorf("cannot add key %q, another key by that name already exists in Data for ConfigMap %q", e.key,
			c.Name)
	}
	if _, ok := c.BinaryData[e.key]; ok {
		return fmt.Errorf("cannot add key %q, another key by that name already exists in BinaryData for ConfigMap %q",
			e.key, c.Name)
	}
	if utf8.Valid(e.value) {
		if c.Data == nil {
			c.Data = map[string]string{}
		}
		c.Data[e.key] = string(e.value)
		return nil
	}
	if c.BinaryData == nil {
		c.BinaryData = map[string][]byte{}
	}
	c.BinaryData[e.key] = e.value
	return nil
}

func configMapHash(c *corev1.ConfigMap) (string, error) {
	content := map[string]any{"kind": "ConfigMap", "name": c.Name, "data": c.Data}
	if len(c.Data) == 0 {
		content["data"] = ""
	}
	if len(c.BinaryData) > 0 {
		content["binaryData"] = c.BinaryData
	}
	return hashSuffix(content)
}
