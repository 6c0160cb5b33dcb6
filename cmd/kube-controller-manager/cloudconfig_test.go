package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCloudConfig: ranges are read strictly, every bad one is named, and without a file there are none.
func TestCloudConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, err string }{
		"one":         {text: "loadBalancerCIDRs: [10.77.0.192/26]", want: "10.77.0.192/26"},
		"none":        {text: "{}"},
		"misspelt":    {text: "loadBalancerCIDR: [10.77.0.192/26]", err: "unknown field"},
		"no range":    {text: "loadBalancerCIDRs: [all]", err: `"all"`},
		"two of them": {text: "loadBalancerCIDRs: [all, some]", err: `"some"`},
	} {
		path := filepath.Join(t.TempDir(), "cloud.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readCloudConfig(path)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
			continue
		}
		if c.err == "" && (len(got) != strings.Count(c.want, "/") || c.want != "" && got[0].String() != c.want) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	if got, err := readCloudConfig(""); err != nil || got != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	if err := (&options{cloudConfig: "/does/not/exist"}).validate(); err == nil ||
		!strings.Contains(err.Error(), "--cloud-config") {
		t.Errorf("a file that is not there: %v", err)
	}
}
