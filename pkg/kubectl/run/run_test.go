package run

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestChecks: what is wrong with the flags is said before any request is made (there is no server).
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"run --image=a", "error: NAME is required for run\n"},
		{"run x", "error: required flag(s) \"image\" not set\n"},
		{"run x --image=:::", "error: invalid image name \":::\": invalid reference format\n"},
		{"run x --image=", "error: --image is required\n"},
		{"run x --image=UPPER", "error: invalid image name \"UPPER\": invalid reference format\n"},
		{"run x --image=a@sha256:12", "error: invalid image name \"a@sha256:12\": invalid reference format\n"},
		{"run x --image=a --restart=Foo", "error: invalid restart policy: Foo, valid values are: Always, OnFailure, Never\n"},
		{"run x --image=a --image-pull-policy=never", "error: invalid image pull policy: never, valid values are: Always, IfNotPresent, Never\n"},
		{"run x --image=a --rm", "error: --rm should only be used for attached containers\n"},
		{"run x --image=a -t", "error: -i/--stdin is required for containers with -t/--tty=true\n"},
		{"run x --image=a --expose", "error: --port must be set when exposing a service\n"},
		{"run x --image=a -it --dry-run=client",
			"error: --dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)\n"},
		{"run x --image=a --pod-running-timeout=0s", "error: --pod-running-timeout must be higher than zero\n"},
		{"run x --image=a --env=1A=b", "error: invalid env: 1A=b\n"},
		{"run x --image=a --labels=foo", "error: unexpected label spec: foo\n"},
		{"run x --image=a --overrides={", "error: Invalid JSON Patch\n"},
		{"run x --image=a --overrides={} --override-type=foo", "error: invalid override type: foo\n"},
		{"run x --image=a --annotations=a", "error: invalid annotations format: a\n"},
		{"run x --image=a --dry-run=foo",
			"error: Invalid dry-run value (foo). Must be \"none\", \"server\", or \"client\".\n"},
	} {
		got, code := writetest.Run(t, NewCommand, "", "", strings.Fields(c.args)...)
		if got != c.want || code != 1 {
			t.Errorf("%s: code %d\n got %q\nwant %q", c.args, code, got, c.want)
		}
	}
}

// TestDryRun pins the objects that the flags make.
func TestDryRun(t *testing.T) {
	t.Parallel()
	got, code := writetest.Run(t, NewCommand, "", "", "run", "x", "--image=a", "--port=80", "--env=A=b", "--labels=a=b",
		"-n", "foo",
		"--expose", "--privileged", `--overrides={"spec":{"nodeName":"n"}}`, "--dry-run=client", "-o", "yaml", "--",
		"c", "d")
	const want = `apiVersion: v1
kind: Pod
metadata:
  labels:
    a: b
  name: x
  namespace: foo
spec:
  containers:
  - args:
    - c
    - d
    env:
    - name: A
      value: b
    image: a
    name: x
    ports:
    - containerPort: 80
    resources: {}
    securityContext:
      privileged: true
  dnsPolicy: ClusterFirst
  nodeName: "n"
  restartPolicy: Always
status: {}
---
apiVersion: v1
kind: Service
metadata:
  name: x
  namespace: foo
spec:
  ports:
  - port: 80
    protocol: TCP
    targetPort: 80
  selector:
    a: b
status:
  loadBalancer: {}
`
	if got != want || code != 0 {
		t.Errorf("code %d, got:\n%s", code, got)
	}
}

// TestCreate sends the pod with kubectl-run as its field manager.
func TestCreate(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	if got, code := writetest.Run(t, NewCommand, s.URL, "", "run", "x", "--image=a"); got != "pod/x created\n" ||
		code != 0 {
		t.Errorf("got %q, code %d", got, code)
	}
	log := s.Log()
	if len(log) != 1 || !strings.HasPrefix(log[0], "POST /api/v1/namespaces/default/pods?fieldManager=kubectl-run ") {
		t.Errorf("requests %q", log)
	}
	if got, code := writetest.Run(t, NewCommand, s.URL, "", "run", "x", "--image=a", "--command", "--",
		"sh"); !strings.HasPrefix(got, "Error from server (AlreadyExists)") || code != 1 {
		t.Errorf("again: got %q, code %d", got, code)
	}
}
