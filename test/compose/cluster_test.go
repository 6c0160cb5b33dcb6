package compose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan/localimage"
)

const project = "bonsaitest"

// user is who runs the cluster: with a directory that the kubeconfig comes to.
type user struct {
	t   *testing.T
	ctx context.Context
	dir string
}

func (u user) kubeconfig() string { return filepath.Join(u.dir, "admin.conf") }

// run runs a command in the engine's network and returns what it prints.
func (u user) run(stdin string, argv ...string) (string, error) {
	cmd := docker.inside(u.ctx, argv...)
	cmd.Env = append(cmd.Env, "COMPOSE_PROJECT_NAME="+project, "BONSAI_KUBECONFIG_DIR="+u.dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		if ended, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, ended.Stderr)
		}
		return "", fmt.Errorf("%s: %w %s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (u user) kubectl(args ...string) (string, error) {
	return u.run("", append([]string{filepath.Join(root, "bin/kubectl"), "--kubeconfig", u.kubeconfig()}, args...)...)
}

// compose runs what the user calls for the cluster as a whole.
func (u user) compose(args ...string) string {
	u.t.Helper()
	began := time.Now()
	out, err := u.run("", append(append([]string(nil), tool...), args...)...)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Logf("%s: %.1f s", strings.Join(args, " "), time.Since(began).Seconds())
	return out
}

// eventually waits until try succeeds, and says how long that took.
func (u user) eventually(what string, try func() error) {
	u.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(u.ctx, patience)
	defer cancel()
	if err := until(ctx, try); err != nil {
		u.t.Fatalf("%s: %v", what, err)
	}
	u.t.Logf("%s: %.1f s", what, time.Since(began).Seconds())
}

// says waits until kubectl prints exactly want.
func (u user) says(want string, args ...string) {
	u.t.Helper()
	u.eventually("kubectl "+strings.Join(args, " "), func() error {
		got, err := u.kubectl(args...)
		if err == nil && got != want {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}

// up starts the cluster, and returns when the kubeconfig says that it is ready.
func (u user) up(args ...string) {
	u.t.Helper()
	u.compose(append([]string{"up", "-d"}, args...)...)
	u.eventually("the kubeconfig", func() error {
		_, err := os.Stat(u.kubeconfig())
		return err
	})
}

// web is a pod on each node that says its name, behind a Service, with a directory of its node's data.
const web = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: ` + localimage.Busybox + `
        command: [sh, -c, 'mkdir /w; hostname >/w/index.html; exec httpd -f -p 8080 -h /w']
        volumeMounts: [{name: kept, mountPath: /kept}]
      volumes: [{name: kept, hostPath: {path: /var/lib/kept, type: DirectoryOrCreate}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
`

// pods are the web's, as "name address", one for each node.
func (u user) pods() ([]string, error) {
	out, err := u.kubectl("get", "pods", "-l", "app=web", "-o",
		`jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name} {.status.podIP}{"\n"}{end}`)
	if pods := strings.Split(strings.TrimSpace(out), "\n"); err == nil && len(pods) == 3 {
		return pods, nil
	}
	return nil, fmt.Errorf("pods %q: %w", out, err)
}

// works waits until packets go everywhere: from the API servers to all pods, which is how they reach webhooks; from a
// pod to a Service by its name, and to the pods of all nodes; from an API server to kubelets.
func (u user) works() {
	u.t.Helper()
	u.eventually("the network", func() error {
		pods, err := u.pods()
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(pods[0], " ")
		for _, pod := range pods {
			name, address, _ := strings.Cut(pod, " ")
			if got, err := u.kubectl("get", "--raw",
				"/api/v1/namespaces/default/pods/"+name+":8080/proxy/"); err != nil || strings.TrimSpace(got) != name {
				return fmt.Errorf("%s says through an API server: %q %w", name, got, err)
			}
			if got, err := u.kubectl("exec", first, "--", "wget", "-qO-", "http://"+address+":8080"); err != nil ||
				got != name {
				return fmt.Errorf("%s says to %s: %q %w", name, first, got, err)
			}
		}
		if got, err := u.kubectl("exec", first, "--", "wget", "-qO-",
			"http://web.default.svc.cluster.local"); err != nil || !strings.HasPrefix(got, "web-") {
			return fmt.Errorf("the Service says: %q %w", got, err)
		}
		if got, err := u.kubectl("exec", first, "--", "nslookup", "etcd-cp1."); err != nil {
			return fmt.Errorf("names beside the cluster: %q %w", got, err)
		}
		return nil
	})
}

// identities are the UIDs of what must be the same after all that happens.
func (u user) identities() string {
	u.t.Helper()
	var out string
	u.eventually("identities", func() (err error) {
		out, err = u.kubectl("get", "nodes/n1", "nodes/n2", "nodes/n3", "-o", "jsonpath={.items[*].metadata.uid}")
		if err != nil {
			return err
		}
		kept, err := u.kubectl("get", "configmap", "kept", "-o", "jsonpath={.metadata.uid}")
		out += " " + kept
		return err
	})
	return out
}

// keeps checks that nothing was lost.
func (u user) keeps(identities string) {
	u.t.Helper()
	if now := u.identities(); now != identities {
		u.t.Errorf("objects %s, were %s", now, identities)
	}
	u.works()
	pods, err := u.pods()
	if err != nil {
		u.t.Fatal(err)
	}
	for _, pod := range pods {
		name, _, _ := strings.Cut(pod, " ")
		if got, err := u.kubectl("exec", name, "--", "cat", "/kept/file"); err != nil || got != "kept" {
			u.t.Errorf("the node's file, seen from %s: %q %v", name, got, err)
		}
	}
}

// leader is the service of those with a lease that has it.
func (u user) leader(component string) string {
	u.t.Helper()
	var holder string
	u.eventually("the leading "+component, func() (err error) {
		if holder, err = u.kubectl("get", "lease", component, "-n", "kube-system", "-o",
			"jsonpath={.spec.holderIdentity}"); err == nil && holder == "" {
			err = fmt.Errorf("nobody")
		}
		return err
	})
	member, _, _ := strings.Cut(holder, "_")
	return component + "-" + member
}

// powerless checks that the processes of control planes are nobody and may do nothing that others may not.
func (u user) powerless() {
	u.t.Helper()
	names, err := u.run("", "docker", "ps", "--format", "{{.Names}}", "--filter", "ancestor=bonsai/control-plane")
	if err != nil {
		u.t.Fatal(err)
	}
	seen := 0
	for _, name := range strings.Fields(names) {
		if strings.Contains(name, "admin") {
			continue // it gives the user a file
		}
		pid, err := u.run("", "docker", "inspect", "--format", "{{.State.Pid}}", name)
		if err != nil {
			u.t.Fatal(err)
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			u.t.Fatal(err)
		}
		for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532\n", "CapPrm:\t0000000000000000\n",
			"CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
			if !strings.Contains(string(status), want) {
				u.t.Errorf("%s has no %q in\n%s", name, want, status)
			}
		}
		seen++
	}
	if seen != 10 {
		u.t.Errorf("%d containers of control planes: %s", seen, names)
	}
}

// TestCluster: a cluster that works, survives the loss of one of each, the death of its engine, and `down`, and of
// which `down -v` leaves nothing.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	u := user{t: t, ctx: ctx, dir: t.TempDir()}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		u.ctx = context.WithoutCancel(ctx)
		for _, args := range [][]string{{"ps"}, {"logs", "--no-color", "--tail=15"}, {"down", "-v"}} {
			out, err := u.run("", append(append([]string(nil), tool...), args...)...)
			t.Logf("%s (%v)\n%s", strings.Join(args, " "), err, out)
		}
	})
	u.up("--build")
	u.says("True True True", "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	published, err := u.run("", "docker", "ps", "--format", "{{.Ports}}")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Fields(published); len(lines) != 1 || !strings.HasPrefix(lines[0], "127.0.0.1:6443->") {
		t.Errorf("published on the machine: %q", lines)
	}
	u.powerless()
	if _, err := u.run(web, filepath.Join(root, "bin/kubectl"), "--kubeconfig", u.kubeconfig(), "apply", "-f",
		"-"); err != nil {
		t.Fatal(err)
	}
	u.works()
	pods, err := u.pods()
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		name, _, _ := strings.Cut(pod, " ")
		if _, err := u.kubectl("exec", name, "--", "sh", "-c", "echo kept >/kept/file"); err != nil {
			t.Fatal(err)
		}
	}
	identities := u.identities()

	lost := []string{"etcd-cp1", "kube-apiserver-cp1", u.leader("kube-controller-manager"), u.leader("kube-scheduler")}
	u.compose(append([]string{"kill"}, lost...)...)
	u.eventually("a Deployment without "+strings.Join(lost, ", "), func() error {
		_, err := u.kubectl("create", "deployment", "later", "--image="+localimage.Busybox, "--", "sleep", "1000000")
		return err
	})
	u.says("1", "get", "deployment", "later", "-o", "jsonpath={.status.availableReplicas}")
	u.compose("up", "-d")
	for _, server := range []string{"10.77.63.2", "10.77.63.3"} {
		u.says("ok", "--server=https://"+server+":6443", "get", "--raw", "/readyz")
	}
	u.keeps(identities)

	if err := docker.kill(); err != nil {
		t.Fatal(err)
	}
	if err := docker.start(ctx); err != nil {
		t.Fatal(err)
	}
	u.keeps(identities)

	u.compose("down")
	if _, err := os.Stat(u.kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig of a cluster that is down: %v", err)
	}
	u.up()
	u.keeps(identities)

	u.compose("down", "-v")
	for _, args := range [][]string{{"ps", "-a"}, {"volume", "ls"}, {"network", "ls", "--filter", "type=custom"}} {
		if left, err := u.run("", append(append([]string{"docker"}, args...), "-q")...); err != nil || left != "" {
			t.Errorf("docker %s: %q %v", strings.Join(args, " "), left, err)
		}
	}
	if left, err := os.ReadDir(u.dir); err != nil || len(left) > 0 {
		t.Errorf("in the kubeconfig's directory: %v %v", left, err)
	}
}
