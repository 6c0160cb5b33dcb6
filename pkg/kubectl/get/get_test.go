package get

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

var objects = []string{
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c1","namespace":"default","labels":{"app":"x"}}}`,
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c2","namespace":"default"}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"app":"x"}}}`,
	`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`,
}

// TestMixed: one table for each run of one kind, names with their kind where there are several, and what is missing
// does not hide what is there. Each of several errors has a line, after the list of what there is unless one object
// alone was asked for.
func TestMixed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, docs ...string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(docs, "\n---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bare := func(kind, name, labels string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `","labels":{` + labels + `}}}`
	}
	mixed := file("mixed", bare("ConfigMap", "c1", `"app":"x"`), bare("ConfigMap", "c2", ""),
		bare("Pod", "p", `"app":"x"`))
	missing := file("missing", bare("ConfigMap", "c1", ""), bare("ConfigMap", "gone", ""), bare("Pod", "p", ""))
	nowhere := file("nowhere", bare("ConfigMap", "gone", ""))
	const gone = "Error from server (NotFound): configmaps \"gone\" not found\n"
	const lost = "Error from server (NotFound): configmaps \"lost\" not found\n"
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"-f " + mixed, "NAME AGE\nconfigmap/c1 <unknown>\nconfigmap/c2 <unknown>\n\nNAME AGE\npod/p <unknown>\n", 0},
		{"-f " + mixed + " --no-headers", "configmap/c1 <unknown>\nconfigmap/c2 <unknown>\npod/p <unknown>\n", 0},
		{"-f " + mixed + " -o name", "configmap/c1\nconfigmap/c2\npod/p\n", 0},
		{"-f " + mixed + " -l app=x -o name", "configmap/c1\npod/p\n", 0},
		{"-f " + mixed + " -o jsonpath={.kind}:{.items[*].kind}", "List:ConfigMap ConfigMap Pod", 0},
		{"-f " + missing, "NAME AGE\nconfigmap/c1 <unknown>\n\nNAME AGE\npod/p <unknown>\n" + gone, 1},
		{"-f " + missing + " -o name", gone, 1},
		{"-f " + missing + " -f " + mixed + " -o name",
			"configmap/c1\npod/p\nconfigmap/c1\nconfigmap/c2\npod/p\n" + gone, 1},
		{"-f " + missing + " --ignore-not-found -o name", "configmap/c1\npod/p\n", 0},
		{"-f " + mixed + " -A", "no namespace set on resource /v1, Resource=configmaps \"c1\"\nno namespace set on resource /v1, Resource=configmaps \"c2\"\nno namespace set on resource /v1, Resource=pods \"p\"\n", 1},
		{"-f " + mixed + " -w -o name",
			"configmap/c1\nconfigmap/c2\npod/p\nerror: watch is only supported on individual resources and resource collections - 3 resources were found\n", 1},
		{"cm c1 c2 -w -o name", "configmap/c1\nconfigmap/c2\nerror: you may only watch a single resource or type of resource at a time\n", 1},
		{"cm/c1 pod/p cm/gone -o name", "configmap/c1\npod/p\n" + gone, 1},
		{"cm c1 gone lost -o name", "configmap/c1\n" + gone + lost, 1},
		{"cm gone lost -o jsonpath={.kind}", "List" + gone + lost, 1},
		{"cm,pods gone -o jsonpath={.kind}", "List" + gone + "Error from server (NotFound): pods \"gone\" not found\n",
			1},
		{"-f " + nowhere + " -f " + nowhere + " -o jsonpath={.kind}", "List" + gone + gone, 1},
		{"cm gone -o jsonpath={.kind}", gone, 1},
		{"-f " + nowhere + " -o jsonpath={.kind}", gone, 1},
		{"pods,po,no", "NAME AGE\npod/p <unknown>\n\nNAME AGE\nnode/n <unknown>\n", 0},
		{"pods,po", "NAME AGE\np <unknown>\n", 0},
		{"svc,no -A", "NAMESPACE NAME AGE\n node/n <unknown>\n", 0},
		{"no,pods -A", "NAME AGE\nnode/n <unknown>\n\nNAMESPACE NAME AGE\ndefault pod/p <unknown>\n", 0},
		{"cm gone -n nowhere", "Error from server (NotFound): namespaces \"nowhere\" not found\n", 1},
		{"pods,", "error: the server doesn't have a resource type \"\"\n", 1},
		{"cm --sort-by=.metadata.name --no-headers", "c1 <unknown>\nc2 <unknown>\n", 0},
		{"cm,no --sort-by=.metadata.name",
			"error: couldn't find any field with path \"{.metadata.name}\" in the list of objects\n", 1},
		{"no,cm --sort-by=.metadata.name -o name", "configmap/c1\nconfigmap/c2\nnode/n\n", 0},
		{"cm -o name --sort-by=.metadata", "error: the field {.metadata} cannot be sorted by: it is no single value\n",
			1},
		{"cm -o name --sort-by=.nope", "error: couldn't find any field with path \"{.nope}\" in the list of objects\n",
			1},
		{"cm --subresource=status", "error: subresource cannot be used when bulk resources are specified\n", 1},
		{"-f " + mixed + " -l app=nope", "No resources found in default namespace.\n", 0},
		{"pv,svc", "No resources found\n", 0},
		{"deploy,svc", "No resources found in default namespace.\n", 0},
		{"svc -A", "No resources found\n", 0},
		{"foo,pods", "error: the server doesn't have a resource type \"foo\"\n", 1},
	} {
		s := writetest.NewServer(t, objects...)
		got, code := writetest.Run(t, NewCommand, s.URL, "", append([]string{"get"}, strings.Fields(c.args)...)...)
		if got = regexp.MustCompile(` +`).ReplaceAllString(got, " "); got != c.want || code != c.code {
			t.Errorf("get %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
	}
}
