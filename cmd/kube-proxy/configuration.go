package main

import (
	"fmt"
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// readConfiguration reads the file at path, a kubeproxy.config.k8s.io/v1alpha1 KubeProxyConfiguration. What a strict
// reader would refuse (fields that there are not, fields said twice) is named in a warning and ignored, as upstream
// does.
func readConfiguration(path string, log *slog.Logger) (*proxyconfig.KubeProxyConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed complete: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := proxyconfig.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("know the kinds of the configuration file: %w", err)
	}
	read := func(strict bool) (runtime.Object, error) {
		s := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
			json.SerializerOptions{Yaml: true, Strict: strict})
		object, _, err := s.Decode(data, nil, nil)
		return object, err
	}
	object, err := read(true)
	if runtime.IsStrictDecodingError(err) {
		log.Warn("Using lenient decoding as strict decoding failed", "file", path, "err", err)
		object, err = read(false)
	}
	if err != nil {
		return nil, fmt.Errorf("failed complete: failed to decode: %w", err)
	}
	c, ok := object.(*proxyconfig.KubeProxyConfiguration)
	if !ok {
		return nil, fmt.Errorf("failed complete: %s holds a %T", path, object)
	}
	return c, nil
}
