package autoscale

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const (
	workload = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":3}}`
	settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}`
	taken    = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"taken","namespace":"default"}}`
)

// What is said and made was recorded from kubectl v1.36.3.
func TestAutoscale(t *testing.T) {
	t.Parallel()
	spec := func(metrics string) string {
		return `{"maxReplicas":3,` + metrics +
			`"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}`
	}
	amount := func(name, value string) string {
		return `"metrics":[{"resource":{"name":"` + name + `","target":{"averageValue":"` + value +
			`","type":"AverageValue"}},"type":"Resource"}],`
	}
	show := " --dry-run=client -o jsonpath={.spec}"
	for _, c := range []struct{ args, want string }{
		{"deploy d", "error: required flag(s) \"max\" not set\n"},
		{"deploy d --max=0", "error: --max=MAXPODS is required and must be at least 1, max: 0\n"},
		{"deploy d --min=3 --max=2", "error: --max=MAXPODS must be larger or equal to --min=MINPODS, max: 2, min: 3\n"},
		{"deploy d --max=3", "horizontalpodautoscaler.autoscaling/d autoscaled\n"},
		{"deploy d --max=3 --name=e --dry-run=server",
			"horizontalpodautoscaler.autoscaling/e autoscaled (server dry run)\n"},
		{"deploy d --max=3 --dry-run=client", "horizontalpodautoscaler.autoscaling/d created (dry run)\n"},
		{"deploy d --max=3" + show, spec("")},
		{"deploy d --max=3 --dry-run=client -o jsonpath={.metadata}", `{"name":"d"}`},
		{"deploy d --max=3 -n default --dry-run=client -o jsonpath={.metadata}", `{"name":"d","namespace":"default"}`},
		{"deploy d --max=3 --min=0" + show, spec("")},
		{"deploy d --max=3 --cpu=50% --memory=200" + show,
			spec(`"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":50,"type":"Utilization"}},"type":"Resource"},` +
				`{"resource":{"name":"memory","target":{"averageValue":"200Mi","type":"AverageValue"}},"type":"Resource"}],`)},
		{"deploy d --max=3 --cpu=500" + show, spec(amount("cpu", "500m"))},
		{"deploy d --max=3 --cpu=0.5" + show, spec(amount("cpu", "500u"))},
		{"deploy d --max=3 --cpu=1e3" + show, spec(amount("cpu", "1"))},
		{"deploy d --max=3 --memory=1.5" + show, spec(amount("memory", "1536Ki"))},
		{"deploy d --max=3 --memory=1Gi" + show, spec(amount("memory", "1Gi"))},
		{"deploy d --max=3 --cpu=100.5%", "error: invalid percentage value: 100.5\n"},
		{"deploy d --max=3 --cpu=-1%", "error: invalid percentage value: -1\n"},
		{"deploy d --max=3 --memory=abc", "error: invalid resource memory value: abc\n"},
		{"deploy d --max=3 --cpu-percent=4 --cpu=3",
			"Flag --cpu-percent has been deprecated, Use --cpu with percentage or resource quantity format (e.g., '70%' for utilization or '500m' for milliCPU).\n" +
				"error: --cpu-percent and --cpu are mutually exclusive\n"},
		{"cm c --max=3", "error: cannot autoscale a ConfigMap: could not find scale subresource for /v1, Resource=configmaps in discovery information\n"},
		{"deploy d --max=3 --name=taken --memory=3",
			"Error from server (AlreadyExists): failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1: " +
				"horizontalpodautoscalers.autoscaling \"object\" already exists\n"},
	} {
		s := writetest.NewServer(t, workload, settings, taken)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"autoscale"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("autoscale %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
