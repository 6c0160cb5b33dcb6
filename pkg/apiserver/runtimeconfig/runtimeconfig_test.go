package runtimeconfig

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources/rows"
)

func parsed(text string) map[string]string {
	out := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(item, "=")
		out[key] = value
	}
	return out
}

// TestErrors: where the real kube-apiserver v1.37.2 ends its start, so does ours, in its words; and where something is
// asked for that is not built.
func TestErrors(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"api/all=false": "invalid runtime-config with only api/all=false", "foo/v1=true": "unknown api groups foo/v1",
		"foo/v1=false": "unknown api groups foo/v1", "foo/v1/x=true": "unknown api groups foo/v1",
		"api/foo=true": "unknown api groups api/foo", "api/all=maybe": "invalid value api/all=maybe",
		"batch/v1=maybe":      `invalid value of batch/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"batch/v1/jobs=maybe": `invalid value of batch/v1/jobs: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"batch/v9=true":       "group version batch/v9 that has not been registered",
		"batch/v9=false":      "group version batch/v9 that has not been registered",
		"batch/v9/jobs=false": "group version batch/v9 that has not been registered",
		"a/b/c/d=false":       "runtime-config invalid key a/b/c/d", "foo=false": "runtime-config invalid key foo",
		"v9=false":                      "runtime-config invalid key v9",
		"batch/v1/jobsx=false":          `batch/v1 has no resource "jobsx"`,
		"api/all=true":                  "",
		"api/beta=true,api/alpha=true":  "",
		"resource.k8s.io/v1beta1=true":  "resource.k8s.io/v1beta1 is not supported",
		"resource.k8s.io/v1beta1=false": "", "batch/v1": "", "batch/v1=": "", "v1=false": "", "api/v1=false": "",
		"api/legacy=false": "", "api/ga=true": "", "api/beta=false,api/alpha=false": "", "batch/v1/jobs=false": "",
		"api/all=false,v1=true": "",
	} {
		_, err := Parse(parsed(given), rows.All())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

// TestOff: a resource counts more than its version, which counts more than its class.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given, off, on string // group/version/resource, "/v1/pods" for the core group
	}{
		{"batch/v1=false", "batch/v1/jobs batch/v1/cronjobs", "apps/v1/deployments /v1/pods"},
		{"batch/v1=false,batch/v1/jobs=true", "batch/v1/cronjobs", "batch/v1/jobs"},
		{"apps/v1/deployments=false", "apps/v1/deployments", "apps/v1/daemonsets"},
		{"v1=false", "/v1/pods", "apps/v1/deployments"},
		{"api/all=false,v1=true", "apps/v1/deployments autoscaling/v2/horizontalpodautoscalers", "/v1/pods"},
		{"api/ga=false,apps/v1=true,apps/v1/daemonsets=false", "/v1/pods apps/v1/daemonsets", "apps/v1/deployments"},
		{"autoscaling/v1=false", "autoscaling/v1/horizontalpodautoscalers", "autoscaling/v2/horizontalpodautoscalers"},
		{"api/beta=false", "", "/v1/pods apps/v1/deployments"},
	} {
		config, err := Parse(parsed(c.given), rows.All())
		if err != nil {
			t.Fatal(err)
		}
		for list, want := range map[string]bool{c.off: true, c.on: false} {
			for _, name := range strings.Fields(list) {
				p := strings.Split(name, "/")
				if got := config.Off(schema.GroupVersionResource{Group: p[0], Version: p[1],
					Resource: p[2]}); got != want {
					t.Errorf("%s: %s is off: %t", c.given, name, got)
				}
			}
		}
	}
	for given, want := range map[string]string{"api/all=false,v1=true": "api/all=false", "api/ga=false": "api/ga=false",
		"flowcontrol.apiserver.k8s.io/v1=false": "flowcontrol.apiserver.k8s.io/v1=false", "v1=false": ""} {
		config, err := Parse(parsed(given), rows.All())
		if err != nil {
			t.Fatal(err)
		}
		if got := config.FairnessOff(parsed(given)); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

// TestLacking: what a real kube-apiserver v1.37.2 serves by a class and this one does not have, by name.
func TestLacking(t *testing.T) {
	t.Parallel()
	const beta = "admissionregistration.k8s.io/v1beta1 certificates.k8s.io/v1beta1 " +
		"coordination.k8s.io/v1beta1 resource.k8s.io/v1beta1 resource.k8s.io/v1beta2 storagemigration.k8s.io/v1beta1"
	const alpha = "admissionregistration.k8s.io/v1alpha1 coordination.k8s.io/v1alpha2 " +
		"internal.apiserver.k8s.io/v1alpha1 resource.k8s.io/v1alpha3"
	for given, want := range map[string]string{
		"": "", "api/ga=true": "", "api/beta=false": "", "api/beta=true": beta, "api/alpha": alpha,
		"api/all=true,api/beta=false": alpha, "api/beta=true,storagemigration.k8s.io/v1beta1=false,resource.k8s.io/v1beta1=false": "" +
			"admissionregistration.k8s.io/v1beta1 certificates.k8s.io/v1beta1 coordination.k8s.io/v1beta1 resource.k8s.io/v1beta2",
	} {
		var switches map[string]string
		if given != "" {
			switches = parsed(given)
		}
		config, err := Parse(switches, rows.All())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, gv := range config.Lacking() {
			got = append(got, gv.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}
