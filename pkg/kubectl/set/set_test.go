package set

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const workload = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","labels":{"app":"d"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"d"}},"template":{"spec":{"containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80}]},{"name":"b","image":"b:1"}]}}}}`

func TestSet(t *testing.T) {
	t.Parallel()
	const images = "-o jsonpath={..image}"
	for _, c := range []struct{ args, want string }{
		{"image deploy/d a=a:2", "deployment.apps/d image updated\n"},
		{"image deploy/d a=a:1", ""},
		{"image deploy/d a=a:2 b=b:3 " + images, "a:2 b:3"},
		{"image deploy/d *=q " + images, "q q"},
		{"image deploy/d z=a:2", "error: unable to find container named \"z\"\n"},
		{"image deploy/d a=a:6 z=1", "deployment.apps/d image updated\nerror: unable to find container named \"z\"\n"},
		{"image deploy/d", "error: at least one image update is required\n"},
		{"image cm c a=b", "error: configmaps/c the object is not a pod or does not have a pod template: *v1.ConfigMap\n"},
		{"image deploy d a=a:2 --dry-run=client", "deployment.apps/d image updated (dry run)\n"},
		{"env deploy/d A=b -o jsonpath={..env}", `[{"name":"A","value":"b"}] [{"name":"A","value":"b"}]`},
		{"env deploy/d A=b -c a -o jsonpath={..env}", `[{"name":"A","value":"b"}]`},
		{"env deploy/d X-", ""},
		{"env deploy/d 1A=b", "error: \"1A\" is not a valid key name: a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')\n"},
		{"env deploy/d A=b -c nope", "Warning: Deployment/d does not have any containers matching \"nope\"\n"},
		{"env deploy/d --from=cm/c --prefix=P_ -c a -o jsonpath={..env}",
			`[{"name":"P_K_Y","valueFrom":{"configMapKeyRef":{"key":"k-y","name":"c"}}}]` +
				"Warning: key k-y transferred to K_Y\n"},
		{"env pod/p --list", "# Pod p, container p\nA=1\n# B from configmap c, key k-y\n"},
		{"env pod/p --list --resolve", "# Pod p, container p\nA=1\nB=v\n"},
		{"env pod/p A=2 B- C=3 --list", "# Pod p, container p\nA=2\nC=3\n"},
		{"env deploy/d A=b -c a --list", "# Deployment d, container a\nA=b\n"},
		{"env pod/p A=2 --overwrite=false", "error: pods/p 'A' already has a value (1), and --overwrite is false\n"},
		{"resources deploy d -c a --limits=cpu=2,memory=1Gi --requests=cpu=100m -o jsonpath={..resources}",
			`{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"100m"}}`},
		{"resources deploy d", "error: you must specify an update to requests or limits (in the form of --requests/--limits)\n"},
		{"resources deploy d -c zz --limits=cpu=2", "error: unable to find container named zz\n"},
		{"sa deploy/d foo -o jsonpath={..serviceAccountName}", "foo"},
		{"selector svc s a=b -o jsonpath={.spec.selector}", `{"a":"b"}`},
		{"selector svc s x=y", "service/s selector updated\n"},
		{"image deploy,pod --all z=1",
			"error: unable to find container named \"z\"\nerror: unable to find container named \"z\"\n"},
		{"env deploy/d -e A=b -c a -o jsonpath={..env}", `[{"name":"A","value":"b"}]`},
		{"env deploy/d A=b A-", "error: can not both modify and remove the same environment variable in the same command\n"},
		{"subject cm c --user=u",
			"error: configmaps/c setting subjects is only supported for RoleBinding/ClusterRoleBinding\n"},
		{"selector deploy d a=b", "error: setting a selector is only supported for Services\n"},
		{"foo", "error: unknown command \"foo\"\nSee 'kubectl set -h' for help and examples\n"},
	} {
		s := writetest.NewServer(t, workload,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"p","image":"a","env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"configMapKeyRef":{"name":"c","key":"k-y"}}}]}]}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"k-y":"v"}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default"},"spec":{"selector":{"x":"y"}}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"set"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("set %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
