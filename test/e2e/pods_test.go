package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// podOf is a pod of one container c that runs the shell script; more is added to the pod's spec, container to the
// container.
func podOf(name, script, container, more string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec:
  terminationGracePeriodSeconds: 1
  %s
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, %q]
    %s
`, name, name, more, script, container)
}

// serve is a script that serves the pod's name at port 8080.
const serve = "mkdir /w && hostname >/w/index.html && exec httpd -f -p 8080 -h /w"

// ready waits until the pods are.
func (k kubectl) ready(pods ...string) {
	k.t.Helper()
	for _, p := range pods {
		k.run("wait", "--for=condition=Ready", "pod/"+p, bound(80))
	}
}

// field waits for a value of the pod's first container status or any other path.
func (k kubectl) field(pod, path, want string) {
	k.t.Helper()
	k.eventually(fmt.Sprintf("%s of %s is %s", path, pod, want), is(want), "get", "pod", pod, "-o",
		"jsonpath={"+path+"}")
}

// events waits until an event of the pod says so.
func (k kubectl) events(pod, text string) {
	k.t.Helper()
	k.eventually("an event of "+pod, contains(text), "get", "events", "--field-selector=involvedObject.name="+pod,
		"-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`)
}

// TestProbes: https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/.
func TestProbes(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "probes")
	k.apply(podOf("exec", "sleep 3600", "readinessProbe: {exec: {command: [test, -f, /tmp/ready]}, periodSeconds: 1}",
		""))
	k.apply(podOf("http", serve,
		"startupProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1, failureThreshold: 30}\n    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}", ""))
	k.apply(podOf("dying", "sleep 3600",
		"livenessProbe: {exec: {command: [sh, -c, 'echo sick; exit 1']}, periodSeconds: 1, failureThreshold: 1}", ""))
	k.apply(podOf("slow", "sleep 3600", "startupProbe: {tcpSocket: {port: 1}, periodSeconds: 1, failureThreshold: 1}",
		""))

	k.field("exec", ".status.containerStatuses[0].started", "true")
	k.field("exec", ".status.containerStatuses[0].ready", "false")
	k.run("exec", "exec", "--", "touch", "/tmp/ready")
	k.ready("exec", "http")
	k.run("exec", "exec", "--", "rm", "/tmp/ready")
	k.field("exec", ".status.conditions[?(@.type==\"Ready\")].reason", "ContainersNotReady")
	k.events("exec", "Warning Unhealthy Readiness probe failed")

	k.events("dying", "Warning Unhealthy Liveness probe failed: sick")
	k.events("dying", "Normal Killing Container c failed liveness probe, will be restarted")
	k.eventually("the sick container is restarted", func(out string) bool {
		return out != "" && out != "0"
	}, "get", "pod", "dying", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	k.events("slow", "Normal Killing Container c failed startup probe, will be restarted")
	if out := k.run("get", "pod", "http", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"); out != "0" {
		t.Errorf("the healthy container was restarted %s times", out)
	}
}

// TestRestartPolicies: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy.
func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "restarts")
	k.apply(podOf("never", "echo last words >/dev/termination-log; exit 3", "", "restartPolicy: Never"))
	k.apply(podOf("done", "exit 0", "", "restartPolicy: OnFailure"))
	k.apply(podOf("crashing", "echo life; exit 1", "terminationMessagePolicy: FallbackToLogsOnError", ""))
	k.apply(podOf("late", "sleep 3600", "", "activeDeadlineSeconds: 2"))

	k.apply(podOf("all", "sleep 3600", "restartPolicy: Never", `restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: i, image: "localhost/busybox:1.0", command: [sh, -c, "echo begun >>/v/begun"], volumeMounts: [{name: v, mountPath: /v}]}
  - name: watcher
    image: localhost/busybox:1.0
    command: [sh, -c, 'test "$(wc -l </v/begun)" = 1 && sleep 1 && exit 88; sleep 3600']
    volumeMounts: [{name: v, mountPath: /v}]
    restartPolicy: Always
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]`))

	// KEP-5532: the init container runs again, the volume and the address stay.
	k.field("all", ".status.containerStatuses[0].restartCount", "1")
	k.field("all", ".status.containerStatuses[0].ready", "true")
	if out := k.run("exec", "all", "-c", "watcher", "--", "cat", "/v/begun"); out != "begun\nbegun" &&
		out != "begun\nbegun\n" {
		t.Errorf("the init container ran: %q", out)
	}
	k.field("all", `.status.conditions[?(@.type=="AllContainersRestarting")].status`, "False")

	k.field("never", ".status.phase", "Failed")
	if out := k.run("get", "pod", "never", "-o",
		"jsonpath={.status.containerStatuses[0].state.terminated.exitCode} {.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.message}"); strings.TrimSpace(out) != "3 Error last words" {
		t.Errorf("the failed container ended with %q", out)
	}
	k.field("done", ".status.phase", "Succeeded")
	k.field("done", ".status.containerStatuses[0].state.terminated.reason", "Completed")
	k.field("crashing", ".status.containerStatuses[0].state.waiting.reason", "CrashLoopBackOff")
	uid := k.run("get", "pod", "crashing", "-o", "jsonpath={.metadata.uid}")
	k.eventually("the back-off is told",
		contains(fmt.Sprintf("s restarting failed container=c pod=crashing_%s(%s)", k.namespace, uid)),
		"get", "pod", "crashing", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}")
	k.events("crashing", fmt.Sprintf("Warning BackOff Back-off restarting failed container c in pod crashing_%s(%s)",
		k.namespace, uid))
	k.field("crashing", ".status.containerStatuses[0].lastState.terminated.message", "life")
	k.eventually("the log of the last life", is("life"), "logs", "--previous", "crashing")
	if out, err := k.try("logs", "--previous", "done"); err == nil ||
		!strings.Contains(out, `previous terminated container "c" in pod "done" not found`) {
		t.Errorf("logs --previous of a pod with one life: %q", out)
	}
	k.field("late", ".status.reason", "DeadlineExceeded")

	// https://kubernetes.io/docs/concepts/storage/ephemeral-storage/: who exceeds a limit of the node's disk is
	// evicted.
	k.apply(podOf("full", "dd if=/dev/zero of=/v/big bs=1M count=3; sleep 3600",
		"volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]"))
	k.field("full", ".status.phase", "Failed")
	k.field("full", ".status.reason", "Evicted")
	k.events("full", `Warning Evicted Usage of EmptyDir volume "v" exceeds the limit "1Mi".`)
}

// TestInitContainersAndSidecars: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/.
func TestInitContainersAndSidecars(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "init")
	const shared = `restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: first, image: 'localhost/busybox:1.0', command: [sh, -c, 'echo first >/v/order'], volumeMounts: [{name: v, mountPath: /v}]}
  - {name: side, image: 'localhost/busybox:1.0', command: [sh, -c, 'echo side >>/v/order; sleep 3600'], restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v}],
     startupProbe: {exec: {command: [grep, side, /v/order]}, periodSeconds: 1}}
  - {name: last, image: 'localhost/busybox:1.0', command: [sh, -c, 'echo last >>/v/order'], volumeMounts: [{name: v, mountPath: /v}]}`
	k.apply(podOf("works", "cat /v/order", "volumeMounts: [{name: v, mountPath: /v}]", shared))
	k.apply(podOf("fails", "echo never", "",
		"restartPolicy: Never\n  initContainers: [{name: i, image: 'localhost/busybox:1.0', command: ['false']}]"))

	k.field("works", ".status.phase", "Succeeded")
	if out := k.run("logs", "works", "-c", "c"); out != "first\nside\nlast" {
		t.Errorf("the containers ran in the order %q", out)
	}
	k.field("works", ".status.conditions[?(@.type==\"Initialized\")].reason", "PodCompleted")
	k.field("fails", ".status.phase", "Failed")
	if out := k.run("get", "pod", "fails", "--no-headers"); !strings.Contains(out, "Init:Error") {
		t.Errorf("a failed init container is shown as %q", out)
	}
	k.field("fails", ".status.conditions[?(@.type==\"Initialized\")].message", "containers with incomplete status: [i]")
}

// TestHooks: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/.
func TestHooks(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "hooks")
	k.apply(podOf("hooks", "sleep 3600",
		"lifecycle: {postStart: {exec: {command: [sh, -c, 'echo hello >/tmp/started']}}, preStop: {exec: {command: [sh, -c, 'echo goodbye >/proc/1/fd/1']}}}", ""))
	k.apply(podOf("broken", "sleep 3600", "lifecycle: {postStart: {exec: {command: ['false']}}}", ""))
	k.ready("hooks")
	if out := k.run("exec", "hooks", "--", "cat", "/tmp/started"); out != "hello" {
		t.Errorf("postStart left %q", out)
	}
	said := make(chan string, 1)
	go func() {
		out, err := k.try("logs", "-f", "hooks")
		said <- fmt.Sprint(out, err)
	}()
	k.run("delete", "pod", "hooks", "--grace-period=5")
	if out := <-said; !strings.Contains(out, "goodbye") {
		t.Errorf("preStop said %q", out)
	}
	k.events("broken", "Warning FailedPostStartHook PostStartHook failed")
}

// TestExecCopyForward goes through the streams of the API server and the kubelet.
func TestExecCopyForward(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "streams")
	k.apply(podOf("p", serve, "", ""))
	k.ready("p")
	for _, code := range []string{"0", "3", "137"} {
		_, err := k.try("exec", "p", "--", "sh", "-c", "exit "+code)
		if got := exitCode(err); got != code {
			t.Errorf("exec of `exit %s` ends with %s", code, got)
		}
	}
	if out, err := k.try("exec", "p", "--", "nothing"); err == nil ||
		!strings.Contains(out, "executable file not found") {
		t.Errorf("exec of nothing: %q", out)
	}
	file := t.TempDir() + "/sent"
	if out, err := exec.Command("sh", "-c", "seq 100000 >"+file).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	k.run("cp", file, k.namespace+"/p:/w/sent")
	k.run("cp", k.namespace+"/p:/w/sent", file+".back")
	if out, err := exec.Command("cmp", file, file+".back").CombinedOutput(); err != nil {
		t.Errorf("cp there and back: %s", out)
	}
	forward(t, k, "pod/p", "8080", "p")
}

func exitCode(err error) string {
	if err == nil {
		return "0"
	}
	var code int
	if _, after, ok := strings.Cut(err.Error(), "exit status "); ok {
		if _, err := fmt.Sscan(after, &code); err == nil {
			return fmt.Sprint(code)
		}
	}
	return err.Error()
}

// TestImageErrors: https://kubernetes.io/docs/concepts/containers/images/.
func TestImageErrors(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "images")
	pod := func(name, image, policy string) {
		k.run("run", name, "--image="+image, "--image-pull-policy="+policy, "--restart=Never")
	}
	pod("absent", "localhost/nothing:1.0", "IfNotPresent")
	pod("never", "localhost/nothing:1.0", "Never")
	k.events("absent", `Normal Pulling Pulling image "localhost/nothing:1.0"`)
	k.events("absent", `Warning Failed Failed to pull image "localhost/nothing:1.0": `)
	k.events("absent", "Warning Failed Error: ErrImagePull")
	k.field("absent", ".status.containerStatuses[0].state.waiting.reason", "ImagePullBackOff")
	k.eventually("the back-off's message", contains(`Back-off pulling image "localhost/nothing:1.0"`), "get", "pod",
		"absent", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}")
	k.field("never", ".status.containerStatuses[0].state.waiting.reason", "ErrImageNeverPull")
	k.field("never", ".status.containerStatuses[0].state.waiting.message",
		`Container image "localhost/nothing:1.0" is not present with pull policy of Never`)
	if out, err := k.try("logs", "absent"); err == nil ||
		!strings.Contains(out, `container "absent" in pod "absent" is waiting to start: trying and failing to pull image`) {
		t.Errorf("logs of a container without an image: %q", out)
	}
}

// until polls f, which tells what it saw.
func until(t *testing.T, what string, f func() (done bool, saw string)) {
	t.Helper()
	var saw string
	began := time.Now()
	if !polled(func() bool { var done bool; done, saw = f(); return done }) {
		t.Errorf("%s: not within %s; last seen: %s", what, time.Since(began).Round(time.Second), saw)
	}
}
