package create

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestChecks: mistakes are said before any request is made (there is no server).
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "error: must specify one of -f and -k\n"},
		{"foo", "error: Unexpected args: [foo]\nSee 'kubectl create -h' for help and examples\n"},
		{"deployment x", "error: required flag(s) \"image\" not set\n"},
		{"deployment x y --image=a",
			"error: exactly one NAME is required, got 2\nSee 'kubectl create deployment -h' for help and examples\n"},
		{"deployment x --image=a --image=b -- x", "error: cannot specify multiple --image options and command\n"},
		{"service clusterip s", "error: at least one tcp port specifier must be provided\n"},
		{"service clusterip s --tcp=a:b", "error: strconv.ParseUint: parsing \"a\": invalid syntax\n"},
		{"service externalname s --external-name=_b", "error: invalid service external name _b\n"},
		{"cm c --from-literal=a", "error: invalid literal source a, expected key=value\n"},
		{"cm c --from-literal=a=b --from-literal=a=c",
			"error: cannot add key \"a\", another key by that name already exists in Data for ConfigMap \"c\"\n"},
		{"cm c --from-file=/nope", "error: error reading /nope: no such file or directory\n"},
		{"cm c --from-file=a=b=c", "error: key names or file paths cannot contain '='\n"},
		{"cm c --from-file==x", "error: key name for file path x missing\n"},
		{"secret tls c", "error: key and cert must be specified\n"},
		{"secret docker-registry c",
			"error: either --from-file or the combination of --docker-username, --docker-password and --docker-server is required\n"},
		{"role r", "error: at least one verb must be specified\n"},
		{"role r --verb=get", "error: at least one resource must be specified\n"},
		{"clusterrole r --verb=list --non-resource-url=/x", "error: invalid verb: 'list' for nonResourceURL\n"},
		{"clusterrole r --verb=get --non-resource-url=x", "error: nonResourceURL should start with /\n"},
		{"rolebinding r", "error: exactly one of clusterrole or role must be specified\n"},
		{"rolebinding r --clusterrole=a --serviceaccount=s", "error: serviceaccount must be <namespace>:<name>\n"},
		{"token default --bound-object-kind=Foo",
			"error: supported --bound-object-kind values are Node, Pod, Secret\n"},
		{"token default --duration=-1h", "error: --duration must be greater than or equal to 0\n"},
		{"quota q --hard=cpu", "error: Invalid argument syntax cpu, expected <resource>=<value>\n"},
		{"pdb p --selector=a=b --min-available=x", "error: invalid format specified for min-available\n"},
		{"pdb p --selector=a=b --max-unavailable=1.5%", "error: invalid format specified for max-unavailable\n"},
		{"job j", "error: either --image or --from must be specified\n"},
		{"job j --image=a --from=cronjob/c", "error: either --image or --from must be specified\n"},
		{"job j --from=cronjob/c -- x", "error: cannot specify --from and command\n"},
		{"job", "error: exactly one NAME is required, got 0\nSee 'kubectl create job -h' for help and examples\n"},
		{"cronjob c --image=a", "error: required flag(s) \"schedule\" not set\n"},
		{"ingress i", "error: not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)\n"},
		{"ingress i --rule=foo=bar:80",
			"error: rule foo=bar:80 is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]\n"},
		{"ingress i --rule=a:1/=bar:80",
			"error: rule a:1/=bar:80 is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]\n"},
		{"ingress i --rule=a/=b=c:80",
			"error: rule a/=b=c:80 is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]\n"},
		{"ingress i --rule=a/=b:",
			"error: rule a/=b: is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]\n"},
		{"ingress i --default-backend=a", "error: default-backend should be in format servicename:serviceport\n"},
		{"ingress i --default-backend=a:1 --annotation=k",
			"error: annotation k is invalid and should be in format key=[value]\n"},
		{"pdb p --selector=a=b", "error: one of min-available or max-unavailable must be specified\n"},
	} {
		got, code := writetest.Run(t, NewCommand(nil), "", "", append([]string{"create"}, strings.Fields(c.args)...)...)
		if got != c.want || code != 1 {
			t.Errorf("create %s: code %d\n got %q\nwant %q", c.args, code, got, c.want)
		}
	}
}

// TestBadSources: what cannot be a key, or is no text, is refused and not left out.
func TestBadSources(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), filepath.Join(t.TempDir(), "e")
	for path, data := range map[string]string{filepath.Join(dir, "good"): "y", filepath.Join(dir, "bad name"): "x",
		env: "A=1\nB=\xff2\n"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const key = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')\n"
	text := "error: env file " + env + " contains invalid utf8 bytes at line 2: [66 61 255 50]\n"
	for args, want := range map[string]string{
		"cm c --from-file=" + dir:                 `error: "bad name" is not a valid key name for a ConfigMap: ` + key,
		"secret generic c --from-file=" + dir:     `error: "bad name" is not valid key name for a Secret ` + key,
		"cm c --from-env-file=" + env:             text,
		"secret generic c --from-env-file=" + env: text,
	} {
		if got, code := writetest.Run(t, NewCommand(nil), "", "",
			append([]string{"create"}, strings.Fields(args)...)...); got != want || code != 1 {
			t.Errorf("create %s: code %d\n got %q\nwant %q", args, code, got, want)
		}
	}
}

// TestGenerators pins the objects; the hashes are those upstream's kubectl makes.
func TestGenerators(t *testing.T) {
	t.Parallel()
	env := filepath.Join(t.TempDir(), "cm.env")
	if err := os.WriteFile(env, []byte("# c\nA=1\nB\nC=x y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, path, want string }{
		{"cm c --append-hash --from-file=k=" + env, "{.metadata.name}", "c-8f468g449c"},
		{"secret generic c --append-hash --from-literal=a=b", "{.metadata.name} {.data}", `c-mdmchtdbm6 {"a":"Yg=="}`},
		{"cm c --from-env-file=" + env, "{.data}", `{"A":"1","B":"","C":"x y"}`},
		{"secret docker-registry c --docker-server=s --docker-username=u --docker-password=p", "{.data} {.type}",
			`{".dockerconfigjson":"eyJhdXRocyI6eyJzIjp7InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCIsImF1dGgiOiJkVHB3In19fQ=="} kubernetes.io/dockerconfigjson`},
		{"deployment x --image=a:5000/foo_bar/Baz:1.0@x -r 2 --port=80",
			"{.spec.replicas} {.spec.selector} {.spec.template.spec.containers}",
			`2 {"matchLabels":{"app":"x"}} [{"image":"a:5000/foo_bar/Baz:1.0@x","name":"Baz","ports":[{"containerPort":80}],"resources":{}}]`},
		{"service clusterip s --tcp=80:8080,90 --tcp=5:http", "{.spec}",
			`{"ports":[{"name":"80-8080","port":80,"protocol":"TCP","targetPort":8080},{"name":"90","port":90,"protocol":"TCP","targetPort":90},{"name":"5-http","port":5,"protocol":"TCP","targetPort":"http"}],"selector":{"app":"s"},"type":"ClusterIP"}`},
		{"clusterrolebinding r --clusterrole=a --user=u --group=g --serviceaccount=n:s",
			"{.subjects[*].kind} {.roleRef.name}", "User Group ServiceAccount a"},
		{"clusterrole r --verb=get,get --non-resource-url=/x", "{.rules}",
			`[{"nonResourceURLs":["/x"],"verbs":["get"]}]`},
		{"priorityclass p --value=10", "{.value} {.preemptionPolicy}", "10 PreemptLowerPriority"},
		{"job j --image=x", "{.apiVersion} {.spec}",
			`batch/v1 {"template":{"metadata":{},"spec":{"containers":[{"image":"x","name":"j","resources":{}}],"restartPolicy":"Never"}}}`},
		{"cronjob c --image=x --schedule=@hourly", "{.spec}",
			`{"jobTemplate":{"metadata":{"name":"c"},"spec":{"template":{"metadata":{},"spec":{"containers":[{"image":"x","name":"c","resources":{}}],"restartPolicy":"OnFailure"}}}},"schedule":"@hourly"}`},
		{"cj c --image=x --schedule=@hourly --restart=Never", "{.spec.jobTemplate.spec.template.spec.restartPolicy}",
			"Never"},
		{"ingress i --rule=a.com/b*=s:http,tls --rule=a.com/=x:80,tls=s1 --rule=/all=z:1,tls=s2", "{.spec.rules}",
			`[{"host":"a.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"name":"http"}}},"path":"/b","pathType":"Prefix"},{"backend":{"service":{"name":"x","port":{"number":80}}},"path":"/","pathType":"Exact"}]}},{"http":{"paths":[{"backend":{"service":{"name":"z","port":{"number":1}}},"path":"/all","pathType":"Exact"}]}}]`},
		{"ingress i --rule=a/=x:1,tls=s --rule=b/=x:1,tls=s --rule=a/y=x:1,tls=t --rule=c/=x:1,tls --rule=/q=x:1,tls=u --rule=/r=x:1,tls=v --rule=/s=x:1,tls", "{.spec.tls}",
			`[{"hosts":["a","b"],"secretName":"s"},{"hosts":["c"]},{"secretName":"u"}]`},
		{"ing i --default-backend=d:8080 --class=foo --annotation=k=v=w --annotation=e=",
			"{.metadata.annotations} {.spec}",
			`{"e":"","k":"v=w"} {"defaultBackend":{"service":{"name":"d","port":{"number":8080}}},"ingressClassName":"foo"}`},
		{"pdb p --selector=a=b --max-unavailable=10%", "{.spec}",
			`{"maxUnavailable":"10%","selector":{"matchLabels":{"a":"b"}}}`},
		{"ns a", "{.kind} {.metadata}", `Namespace {"name":"a"}`},
		{"sa a -n foo", "{.kind} {.metadata}", `ServiceAccount {"name":"a","namespace":"foo"}`},
		{"role r --verb=get,*,list --resource=pods,deploy,pods/log,deployments.apps", "{.rules}",
			`[{"apiGroups":[""],"resources":["pods","pods/log"],"verbs":["*"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["*"]}]`},
	} {
		s := writetest.NewServer(t)
		args := append([]string{"create"}, strings.Fields(c.args)...)
		got, code := writetest.Run(t, NewCommand(nil), s.URL, "",
			append(args, "--dry-run=client", "-o", "jsonpath="+c.path)...)
		if got != c.want || code != 0 {
			t.Errorf("create %s: code %d\n got %s\nwant %s", c.args, code, got, c.want)
		}
		if len(s.Log()) > 0 {
			t.Errorf("create %s: requests %q", c.args, s.Log())
		}
	}
}

// TestFile creates what standard input holds, goes on after a refusal, and asks the server to be strict.
func TestFile(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object","namespace":"default"}}`)
	in := "{apiVersion: v1, kind: ConfigMap, metadata: {name: object}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"
	got, code := writetest.Run(t, NewCommand(nil), s.URL, in, "create", "-f", "-", "--save-config")
	want := "configmap/b created\nError from server (AlreadyExists): error when creating \"STDIN\": configmaps \"object\" already exists\n"
	if got != want || code != 1 {
		t.Errorf("code %d, got %q", code, got)
	}
	if log := s.Log(); !strings.Contains(log[0], "fieldManager=kubectl-create&fieldValidation=Strict") {
		t.Errorf("requests %q", log)
	}
	if o := s.Object("/api/v1/namespaces/default/configmaps/b"); !strings.Contains(o, "last-applied-configuration") {
		t.Errorf("the configuration was not kept: %s", o)
	}
}

// TestRaw sends a file as it is and shows the answer as it is.
func TestRaw(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	const in = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"r"}}`
	got, code := writetest.Run(t, NewCommand(nil), s.URL, in, "create", "--raw=/api/v1/namespaces/default/configmaps",
		"-f", "-")
	if code != 0 || !strings.HasPrefix(got, `{"apiVersion":"v1","kind":"ConfigMap"`) ||
		s.Log()[0] != "POST /api/v1/namespaces/default/configmaps "+in {
		t.Errorf("code %d, got %s, requests %q", code, got, s.Log())
	}
	got, code = writetest.Run(t, NewCommand(nil), s.URL, strings.Replace(in, `"r"`, `"object"`, 1), "create",
		"--raw=/api/v1/namespaces/default/configmaps", "-f", "-")
	if code != 0 {
		t.Fatalf("code %d, got %s", code, got)
	}
	got, code = writetest.Run(t, NewCommand(nil), s.URL, strings.Replace(in, `"r"`, `"object"`, 1), "create",
		"--raw=/api/v1/namespaces/default/configmaps", "-f", "-")
	if want := "Error from server (AlreadyExists): configmaps \"object\" already exists\n"; code != 1 || got != want {
		t.Errorf("code %d, got %s", code, got)
	}
	if got, code = writetest.Run(t, NewCommand(nil), s.URL, in, "create", "--raw=/x", "-f", "-", "-l",
		"a=b"); code != 1 || got != "error: --raw and --selector (-l) are mutually exclusive\n" {
		t.Errorf("code %d, got %s", code, got)
	}
}

// TestJobFrom makes the job that a cron job would run, owned by it.
func TestJobFrom(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c","namespace":"default","uid":"u"},"spec":{"schedule":"@hourly","jobTemplate":{"metadata":{"labels":{"l":"m"},"annotations":{"n":"o"}},"spec":{"parallelism":2,"template":{"spec":{"containers":[{"name":"x","image":"y"}]}}}}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"}}`)
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--from=cronjob/c --dry-run=client -o jsonpath={.metadata}{.spec.parallelism}{.spec.template.spec.containers[*].image}",
			`{"annotations":{"cronjob.kubernetes.io/instantiate":"manual","n":"o"},"labels":{"l":"m"},"name":"j","ownerReferences":[{"apiVersion":"batch/v1","controller":true,"kind":"CronJob","name":"c","uid":"u"}]}2y`, 0},
		{"--image=x --dry-run=client -o jsonpath={.spec.template.spec.containers} -- a b",
			`[{"command":["a","b"],"image":"x","name":"j","resources":{}}]`, 0},
		{"--from=cronjob/c", "job.batch/j created\n", 0},
		{"--from=cronjob/none", "Error from server (NotFound): cronjobs.batch \"none\" not found\n", 1},
		{"--from=pod/p", "error: unknown object type *v1.Pod\n", 1},
		{"--from=p", "error: the server doesn't have a resource type \"p\"\n", 1},
	} {
		got, code := writetest.Run(t, NewCommand(nil), s.URL, "",
			append([]string{"create", "job", "j"}, strings.Fields(c.args)...)...)
		if got != c.want || code != c.code {
			t.Errorf("create job j %s: code %d\n got %s\nwant %s", c.args, code, got, c.want)
		}
	}
}

// TestNotServed: what the server has no kind for can only be shown.
func TestNotServed(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	got, code := writetest.Run(t, NewCommand(nil), s.URL, "", "create", "pdb", "p", "--selector=a=b",
		"--min-available=1")
	const want = "error: failed to create poddisruptionbudgets: the server could not find the requested resource (post poddisruptionbudgets.policy)\n"
	if got != want || code != 1 {
		t.Errorf("code %d, got %q", code, got)
	}
}
