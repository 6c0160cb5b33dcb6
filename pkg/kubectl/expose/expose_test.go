package expose

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const workload = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","labels":{"app":"d"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"d"}},"template":{"spec":{"containers":[{"name":"a","image":"a:1","ports":[{"containerPort":80}]},{"name":"b","image":"b:1"}]}}}}`

func TestExpose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"deploy d -o jsonpath={.spec}",
			`{"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{"app":"d"}}`},
		{"deploy d", "service/d exposed\n"},
		{"deploy d --name=e --port=90,91 -o jsonpath={.spec.ports}",
			`[{"name":"port-1","port":90,"protocol":"TCP","targetPort":90},{"name":"port-2","port":91,"protocol":"TCP","targetPort":91}]`},
		{"deploy d --target-port=http --protocol=UDP -o jsonpath={.spec.ports}",
			`[{"port":80,"protocol":"UDP","targetPort":"http"}]`},
		{"deploy d --selector=a=b --labels=x=y --cluster-ip=None --session-affinity=ClientIP -o jsonpath={.spec.selector}{.metadata.labels}{.spec.clusterIP}{.spec.sessionAffinity}", `{"a":"b"}{"x":"y"}NoneClientIP`},
		{"pod p --port=8 -o jsonpath={.spec.selector}", `{"run":"p"}`},
		{"pod p", "error: couldn't find port via --port flag or introspection\n"},
		{"pod bare --port=1", "error: couldn't retrieve selectors via --selector flag or introspection: the pod has no labels and cannot be exposed\n"},
		{"cm c --port=1", "error: cannot expose a ConfigMap\n"},
		{"deploy d --session-affinity=Foo", "error: unknown session affinity: Foo\n"},
		{"deploy d --port=foo", "error: strconv.Atoi: parsing \"foo\": invalid syntax\n"},
		{"deploy d -l foo", "error: unexpected label spec: foo\n"},
		{`deploy d --overrides={"spec":{"type":"NodePort"}} -o jsonpath={.spec.type}`, "NodePort"},
	} {
		s := writetest.NewServer(t, workload,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"run":"p"}},"spec":{"containers":[{"name":"p","image":"a"}]}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bare","namespace":"default"},"spec":{"containers":[{"name":"p","image":"a"}]}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"expose"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("expose %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
