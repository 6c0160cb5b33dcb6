package scale

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const workload = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","labels":{"app":"d"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"d"}},"template":{"spec":{"containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80}]},{"name":"b","image":"b:1"}]}}}}`

func TestScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want, request string }{
		{"deploy d --replicas=5", "deployment.apps/d scaled\n",
			`PATCH /apis/apps/v1/namespaces/default/deployments/d/scale {"spec":{"replicas":5}}`},
		{"deploy/d --replicas=5 --current-replicas=3", "deployment.apps/d scaled\n",
			`PUT /apis/apps/v1/namespaces/default/deployments/d/scale `},
		{"deploy d --replicas=5 --dry-run=server", "deployment.apps/d scaled (server dry run)\n", `scale?dryRun=All `},
		{"deploy d --replicas=5 --dry-run=client", "deployment.apps/d scaled (dry run)\n", ""},
		{"deploy d --replicas=5 --current-replicas=2", "error: Expected replicas to be 2, was 3\n", ""},
		{"deploy d --replicas=5 --resource-version=77", "error: Expected resource version to be 77, was 1\n", ""},
		{"deploy d", "error: required flag(s) \"replicas\" not set\n", ""},
		{"deploy d --replicas=-1",
			"error: The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0\n", ""},
		{"deploy nope --replicas=1", "Error from server (NotFound): deployments.apps \"nope\" not found\n", ""},
	} {
		s := writetest.NewServer(t, workload)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"scale"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("scale %s:\n got %q\nwant %q", c.args, got, c.want)
		}
		log := strings.Join(s.Log(), "\n")
		if !strings.Contains(log, c.request) ||
			c.request == "" && (strings.Contains(log, "PATCH") || strings.Contains(log, "PUT")) {
			t.Errorf("scale %s: requests\n%s", c.args, log)
		}
	}
}
