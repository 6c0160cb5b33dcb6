package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// readConfigs reads the configuration file and then, over it, the files *.conf of a directory in the order of their
// names; either may be "" for none.
//
// https://kubernetes.io/docs/reference/node/kubelet-config-directory-merging/
func readConfigs(file, dir string) (*kubeletconfig.KubeletConfiguration, error) {
	var files []string
	if file != "" {
		files = append(files, file)
	}
	if dir != "" {
		entries, err := os.ReadDir(dir) // sorted
		if err != nil {
			return nil, fmt.Errorf("read the directory of --config-dir: %w", err)
		}
		for _, e := range entries {
			if !e.IsDir() && filepath.Ext(e.Name()) == ".conf" {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	merged := map[string]any{}
	for _, path := range files {
		fields, err := readConfig(path)
		if err != nil {
			return nil, err
		}
		overlay(merged, fields)
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("merge the kubelet's configuration files: %w", err)
	}
	c := &kubeletconfig.KubeletConfiguration{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("merge the kubelet's configuration files: %w", err)
	}
	return c, nil
}

// overlay puts fields over others. Objects are merged; everything else, lists too, is replaced. Null changes nothing.
func overlay(over, fields map[string]any) {
	for name, v := range fields {
		inner, isMap := v.(map[string]any)
		was, had := over[name].(map[string]any)
		switch {
		case v == nil:
		case isMap && had:
			overlay(was, inner)
		default:
			over[name] = v
		}
	}
}

// readConfig reads a KubeletConfiguration strictly and returns the fields that it sets. It returns a map and not the
// type, because only that distinguishes a field that is not set from one that is set to its zero value.
func readConfig(path string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's configuration: %w", err)
	}
	c := &kubeletconfig.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("the kubelet's configuration %s: %w", path, err)
	}
	if c.Kind != "KubeletConfiguration" || c.APIVersion != "kubelet.config.k8s.io/v1beta1" {
		return nil, fmt.Errorf("the kubelet's configuration %s has %s %s, not kubelet.config.k8s.io/v1beta1 KubeletConfiguration", path, c.APIVersion, c.Kind)
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("the kubelet's configuration %s: %w", path, err)
	}
	return fields, nil
}
