package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"sigs.k8s.io/yaml"
)

// cloudConfig is the file of --cloud-config, in YAML. Kubernetes leaves its form to the provider; ours is the machine
// or network that the nodes are on.
type cloudConfig struct {
	// LoadBalancerCIDRs lead to the nodes. Services of type LoadBalancer without a loadBalancerClass get their
	// addresses from them; without any somebody else gives addresses.
	LoadBalancerCIDRs []string `json:"loadBalancerCIDRs"`
}

// readCloudConfig reads the file strictly and returns the ranges of balancers; without a file there are none.
//
// Strict, because an unknown field is most likely a misspelled one. All wrong ranges are reported together.
func readCloudConfig(path string) ([]netip.Prefix, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--cloud-config: %w", err)
	}
	var c cloudConfig
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("--cloud-config %s: %w", path, err)
	}
	var ranges []netip.Prefix
	var errs []error
	for _, text := range c.LoadBalancerCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--cloud-config %s: loadBalancerCIDRs: %w", path, err))
		}
		ranges = append(ranges, p)
	}
	return ranges, errors.Join(errs...)
}
