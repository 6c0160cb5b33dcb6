package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
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

// writeConfiguration writes the merged and checked configuration to the file of --write-config-to, as a later --config
// reads it.
func (o *options) writeConfiguration(fs *pflag.FlagSet, log *slog.Logger) error {
	c, err := o.configuration(fs, log)
	if err != nil {
		return err
	}
	if _, err := checkLogging(c.Logging, c.FeatureGates); err != nil {
		return err
	}
	if errs := validate(c); len(errs) > 0 {
		return fmt.Errorf("failed validate: %w", errs.ToAggregate())
	}
	c.TypeMeta = metav1.TypeMeta{APIVersion: proxyconfig.SchemeGroupVersion.String(), Kind: "KubeProxyConfiguration"}
	data, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	if err := os.WriteFile(o.writeTo, data, 0o644); err != nil {
		return fmt.Errorf("--write-config-to: %w", err)
	}
	log.Info("Wrote configuration", "file", o.writeTo)
	return nil
}
