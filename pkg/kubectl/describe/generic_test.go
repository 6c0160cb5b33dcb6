package describe

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"leaseDurationSeconds": "Lease Duration Seconds",
		"apiVersion": "API Version", "uid": "UID", "kind": "Kind",
		"podCIDRs": "Pod CIDRs", "nonResourceURLs": "Non Resource URLs",
		"insecureSkipTLSVerify": "Insecure Skip TLSVerify", "myUIDs": "My UIDs", "podIPs": "Pod I Ps",
		"httpGet": "Http Get", "HTTPServer": "HTTPServer", "ABcD": "A Bc D", "x-kubernetes-y": "X - Kubernetes - Y",
		"openAPIV3Schema": "openAPIV3Schema", "snake_case": "snake_case", "": ""} {
		if got := words(in); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}
