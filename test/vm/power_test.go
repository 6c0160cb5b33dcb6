package vm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	cuts    = flag.Int("cuts", 20, "how often TestPowerCuts cuts the power")
	reboots = flag.Int("reboots", 10, "how often TestReboots reboots")
)

// TestPowerCuts: while six clients write and a Deployment rolls out, the power fails at random moments. What was
// acknowledged is there afterwards, nothing happened twice, and no pod runs twice.
func TestPowerCuts(t *testing.T) {
	m := newCluster(t)
	clients := startClients(t, m)
	for i := range *cuts {
		clientsWrite(t, m)
		must(t, m, "kubectl rollout restart deployment/web")
		// The moment is random: none is spared.
		wait := time.Duration(rand.Int64N(int64(30 * time.Second)))
		<-time.After(wait)
		cutPower(t, m)
		start(t, m)
		back(t, m)
		noPodTwice(t, m)
		noBrokenFile(t, m)
		t.Logf("cut %d after %v", i+1, wait)
	}
	clients()
}

// TestFreshPowerCut: what `bonsai up` made is on the disk when it says that the cluster is ready, and so is a snapshot
// when it has been saved, and when it has been restored, and a new key of Secrets.
func TestFreshPowerCut(t *testing.T) {
	m := newMachine(t)
	must(t, m, lazyDisk)
	must(t, m, "bonsai up --name try --nodes 1")
	before := must(t, m, thisCluster)
	cutPower(t, m)
	start(t, m)
	must(t, m, "bonsai start --name try")
	sameCluster(t, m, before)

	must(t, m, "kubectl create configmap kept")
	must(t, m, lazyDisk)
	must(t, m, "bonsai snapshot save whole --name try")
	cutPower(t, m)
	start(t, m)
	must(t, m, "bonsai start --name try && "+unlikeSnapshot+" && bonsai stop --name try")
	must(t, m, lazyDisk)
	must(t, m, "bonsai snapshot restore whole --name try")
	cutPower(t, m)
	start(t, m)
	must(t, m, "bonsai start --name try")
	likeSnapshot(t, m)
	sameCluster(t, m, before)

	must(t, m, lazyDisk)
	must(t, m, "bonsai encryption rotate --name try && kubectl create secret generic kept --from-literal=a=b")
	cutPower(t, m)
	start(t, m)
	must(t, m, "bonsai start --name try && kubectl get secret kept")
	sameCluster(t, m, before)
}

const (
	// lazyDisk lets the kernel write nothing back by itself. On a quick machine the cluster is up before it does; an
	// emulated one must be made so.
	lazyDisk = "sync; sysctl -qw vm.dirty_writeback_centisecs=0 vm.dirty_expire_centisecs=360000"
	// thisCluster prints who a cluster is.
	thisCluster = "kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}'"
)

// unlikeSnapshot changes a cluster whose snapshot has a ConfigMap kept.
const unlikeSnapshot = "kubectl delete configmap kept && kubectl create configmap later"

// likeSnapshot fails the test unless a cluster is again as it was before unlikeSnapshot.
func likeSnapshot(t *testing.T, m *Machine) {
	t.Helper()
	if has := must(t, m, "kubectl get configmaps -o name"); has != "configmap/kept\nconfigmap/kube-root-ca.crt" {
		t.Errorf("the restored cluster has %s", has)
	}
}

// sameCluster fails the test unless the cluster is the one that was there before, and its components found no broken
// file.
func sameCluster(t *testing.T, m *Machine, before string) {
	t.Helper()
	if after := must(t, m, thisCluster); after != before {
		t.Errorf("the cluster is %s, not %s", after, before)
	}
	noBrokenFile(t, m)
}

// TestReboots: all that ran before a reboot runs after it: the same objects, the same addresses, the same data.
func TestReboots(t *testing.T) {
	m := newCluster(t)
	must(t, m, `kubectl apply -f - <<'END'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data}
spec:
  serviceName: data
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec:
      containers:
      - name: c
        image: localhost/busybox:1.0
        command: [sh, -c, "date >>/data/starts; exec httpd -f -p 8080 -h /data"]
        volumeMounts: [{name: v, mountPath: /data}]
        readinessProbe: {httpGet: {port: 8080, path: /starts}}
  volumeClaimTemplates:
  - metadata: {name: v}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}}
---
apiVersion: v1
kind: Service
metadata: {name: data}
spec: {selector: {app: data}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Forbid # an emulated machine may need more than a minute for a pod
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "localhost/busybox:1.0", command: ["true"]}]}}}}
END`)
	must(t, m, "kubectl rollout status statefulset/data --timeout=10m")
	// A job runs before the reboots, and another one after them.
	eventually(t, m, `[ -n "$(`+lastRun+`)" ] && echo ran`, "ran")
	before := must(t, m, stable)
	for i := range *reboots {
		reboot(t, m)
		back(t, m)
		must(t, m, "kubectl rollout status statefulset/data --timeout=10m")
		if after := must(t, m, stable); after != before {
			t.Fatalf("reboot %d: before:\n%s\nafter:\n%s", i+1, before, after)
		}
		// The volume kept what each life of the container has written, and the Service leads to it.
		starts := fmt.Sprintf("starts=%d.", i+2)
		eventually(t, m, "all=$(kubectl exec deployment/web -- wget -T 10 -qO- http://data/starts) && "+
			`echo "starts=$(echo "$all" | wc -l)."`, starts)
		noPodTwice(t, m)
		t.Logf("reboot %d", i+1)
	}
	ran := must(t, m, lastRun)
	eventually(t, m, `now=$(`+lastRun+`) && [ -n "$now" ] && [ "$now" != "`+ran+`" ] && echo ran again`, "ran again")
	if state := must(t, m, "systemctl is-system-running --wait || systemctl --failed --plain"); state != "running" {
		t.Errorf("systemd: %s", state)
	}
}

// lastRun prints when a job of the CronJob ended well.
const lastRun = `kubectl get cronjob often -o 'jsonpath={.status.lastSuccessfulTime}'`

// stable prints the objects that a reboot must not change.
const stable = `kubectl get deployments,statefulsets,pods,services,nodes,configmaps,persistentvolumeclaims,persistentvolumes -l '!job-name' -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.spec.nodeName} {.status.podIP} {.spec.clusterIP} {.spec.podCIDR} {.spec.volumeName}{"\n"}{end}'`

// noPodTwice returns when each pod of the Deployment that has not ended, as an evicted one has, runs: one process for
// each, found by the UID in the names of its cgroup. It fails the test if a pod has two, or if there is no pod.
func noPodTwice(t *testing.T, m *Machine) {
	t.Helper()
	noPodTwiceOf(t, m, func(script string) string { return script })
}

// noPodTwiceOf is noPodTwice for the cluster of a user: as makes a script of root's of one of the user's.
func noPodTwiceOf(t *testing.T, m *Machine, as func(script string) string) {
	t.Helper()
	within(t, func(ctx context.Context) error {
		ctx, twice := context.WithCancelCause(ctx)
		defer twice(nil)
		return until(ctx, 2*time.Second, "each pod runs once", func() (bool, string) {
			processes, err := m.Run(ctx, "for p in $(pgrep -x sleep); do grep -q 1000000 /proc/$p/cmdline && cat /proc/$p/cgroup; done; true")
			if err != nil {
				return false, err.Error()
			}
			pods, err := m.Run(ctx, as(`kubectl get pods -l app=web --field-selector status.phase!=Failed,status.phase!=Succeeded -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}'`))
			if err != nil {
				return false, fmt.Sprint(pods, " ", err)
			}
			var running []string
			for _, uid := range podUID.FindAllString(processes, -1) {
				running = append(running, strings.ReplaceAll(strings.TrimPrefix(uid, "pod"), "_", "-"))
			}
			want := strings.Fields(pods)
			slices.Sort(running)
			slices.Sort(want)
			said := fmt.Sprintf("running %q, pods %q", running, want)
			if len(slices.Compact(slices.Clone(running))) < len(running) {
				twice(errors.New("a pod runs twice"))
			}
			return len(want) > 0 && slices.Equal(running, want), said
		})
	})
}

var podUID = regexp.MustCompile(`pod[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}`)

// noBrokenFile fails the test if a component found a file that the power cut has left half written.
func noBrokenFile(t *testing.T, m *Machine) {
	t.Helper()
	if found := must(t, m, "cd "+clusters+"/try/logs && grep -rhiE 'corrupt|checksum mismatch|unexpected end of|cannot unmarshal|exec format error|file is empty|\\.(json|ya?ml|conf|toml|db|crt|key|pem)[^ ]*: .*EOF|panic:' . 2>/dev/null | tail -5"); found != "" {
		t.Errorf("found after a power cut: %s", found)
	}
}

// startClients lets the clients of test/history write to the cluster's API until the returned function is called,
// which fails the test if anything that they were told contradicts itself. The cluster must then be up.
func startClients(t *testing.T, m *Machine) (finish func()) {
	t.Helper()
	must(t, m, "kubectl create serviceaccount outside && kubectl create clusterrolebinding outside --clusterrole=cluster-admin --serviceaccount=default:outside")
	token := must(t, m, "kubectl create token outside --duration=12h")
	server := must(t, m, `kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}'`)
	// An emulated machine that is asked as often as its host could answer does nothing else after a reboot.
	slower := "1"
	if strings.HasPrefix(*accelerator, "tcg") {
		slower = "20"
	}
	// go test gives a test no standard input.
	program := filepath.Join(t.TempDir(), "history.test")
	if err := run(t.Context(), "go", "test", "-c", "-o", program, "../history"); err != nil {
		t.Fatal(err)
	}
	client := exec.Command(program, "-test.v", "-test.timeout=12h", "-test.run=TestOutside", "-writers=6", "-slower="+slower,
		"-server=https://"+forward(t, m, strings.TrimPrefix(server, "https://")), "-token="+token)
	input, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	client.Stdout, client.Stderr = &out, &out
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	finish = sync.OnceFunc(func() {
		if err := errors.Join(input.Close(), <-ended); err != nil {
			t.Errorf("the clients: %v", err)
		}
		t.Log(out.String())
	})
	t.Cleanup(finish)
	within(t, func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		return until(ctx, 2*time.Second, "the clients have written", func() (bool, string) {
			select {
			case err := <-ended:
				ended <- err
				cancel(errors.New("the clients have ended"))
			default:
			}
			out, err := m.Run(ctx, "kubectl get configmaps -n history -o name")
			return err == nil && strings.Contains(out, "configmap/cm-"), fmt.Sprint(out, " ", err)
		})
	})
	return finish
}

// clientsWrite returns when the clients have written since the call.
func clientsWrite(t *testing.T, m *Machine) {
	t.Helper()
	const revisions = "kubectl get configmaps -n history -o 'jsonpath={.items[*].metadata.resourceVersion}'"
	before := must(t, m, revisions)
	eventually(t, m, "now=$("+revisions+`) && [ "$now" != "`+before+`" ] && echo written`, "written")
}

// forward listens on loopback until the test ends, connects to an address as the machine sees it, and returns where it
// listens. While the machine has no power it refuses.
func forward(t *testing.T, m *Machine, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer conn.Close()
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
				defer cancel()
				inside, err := m.Dial(ctx, "tcp", address)
				if err != nil {
					return
				}
				go func() {
					defer inside.Close()
					_, _ = io.Copy(inside, conn)
				}()
				_, _ = io.Copy(conn, inside)
			}()
		}
	}()
	return l.Addr().String()
}
