package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// TestCrashes kills one component after the other with SIGKILL while a rollout runs. Each time the rollout completes,
// and a watcher that follows from one resourceVersion to the next has seen exactly the pods there are. It is not
// parallel: it takes the cluster's components away from everyone.
func TestCrashes(t *testing.T) {
	k := newNamespace(t, "kubectl", "crashes")
	k.apply(strings.Replace(web, "replicas: 3", "replicas: 4", 1))
	k.run("rollout", "status", "deployment/web", bound(80))
	seen := followPods(t, k.namespace)
	for i, victim := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd", "n1/kubelet",
		"n1/kube-proxy", "n1/bonsai-network", "n2/containerd"} {
		t.Run(strings.ReplaceAll(victim, "/", "-"), func(t *testing.T) {
			k := kubectl{t: t, binary: k.binary, namespace: k.namespace}
			k.run("set", "env", "deployment/web", fmt.Sprintf("VERSION=%d", i))
			kill(t, victim)
			waitFor(t, "the rollout completes", func() bool {
				out, err := k.try("rollout", "status", "deployment/web", bound(60))
				return err == nil && strings.Contains(out, "successfully rolled out")
			})
			k.eventually("four pods and no other", func(out string) bool {
				return strings.Count(out, "Running") == 4 && len(strings.Split(out, "\n")) == 4
			}, "get", "pods", "--no-headers")
			k.eventually("the watcher has seen the same pods", seen.same, "get", "pods", "-o",
				`jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}`)
		})
	}
}

// kill ends a process of the host ("etcd") or of a node ("n1/kubelet") and waits until the supervisor has started it
// again.
func kill(t *testing.T, victim string) {
	t.Helper()
	where, process, onNode := strings.Cut(victim, "/")
	if !onNode {
		where, process = "host", victim
	}
	pid := pidOf(t, where, process)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, victim+" is started again", func() bool {
		now := pidOf(t, where, process)
		return now != 0 && now != pid
	})
}

func pidOf(t *testing.T, where, process string) int {
	t.Helper()
	// An error says only that not all of the cluster is up.
	out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "status")
	m := regexp.MustCompile(`(?m)^` + where + ` +` + process + ` +(\d+) `).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("bonsai status does not show %s on %s:\n%s (%v)", process, where, out, err)
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// followed is what a watcher knows of a namespace's pods. It keeps nothing but what events told it.
type followed struct{ uids chan map[string]bool }

// same reports whether the watcher knows exactly the pods whose UIDs out lists.
func (f followed) same(out string) bool {
	known := <-f.uids
	defer func() { f.uids <- known }()
	listed := strings.Fields(out)
	for _, uid := range listed {
		if !known[uid] {
			return false
		}
	}
	return len(listed) == len(known)
}

// followPods watches from the present on with client-go's retrying watcher, which goes on at the last resourceVersion
// it saw and never lists: an event that the server leaves out is never made good.
func followPods(t *testing.T, namespace string) followed {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range list.Items {
		known[string(p.UID)] = true
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Pods(namespace).Watch(ctx, o)
		}})
	if err != nil {
		t.Fatal(err)
	}
	f := followed{uids: make(chan map[string]bool, 1)}
	f.uids <- known
	go func() {
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				t.Errorf("the watch said %s: %v", event.Type, event.Object)
				return
			}
			known := <-f.uids
			if event.Type == watch.Deleted {
				delete(known, string(pod.UID))
			} else {
				known[string(pod.UID)] = true
			}
			f.uids <- known
		}
	}()
	return f
}

// TestKubeletRestart: a new kubelet takes over what runs; it restarts no container and flips no readiness.
func TestKubeletRestart(t *testing.T) {
	k := newNamespace(t, "kubectl", "kubelet-restart")
	k.apply(web)
	k.run("rollout", "status", "deployment/web", bound(80))
	state := []string{"get", "pods", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}`}
	before := k.run(state...)
	if strings.Count(before, " True ") != 3 {
		t.Fatalf("before: %s", before)
	}
	for _, node := range []string{"n1", "n2"} {
		kill(t, node+"/kubelet")
		// The new kubelet is at work once it has renewed its node's lease.
		lease := []string{"-n", "kube-node-lease", "get", "lease", node, "-o", "jsonpath={.spec.renewTime}"}
		last := k.run(lease...)
		k.eventually("the kubelet of "+node+" is at work again", func(out string) bool { return out != last }, lease...)
	}
	k.run("run", "probe", "--image=localhost/busybox:1.0", "--restart=Never", "--command", "--", "true")
	k.eventually("a new pod runs to its end", is("Succeeded"), "get", "pod", "probe", "-o", "jsonpath={.status.phase}")
	k.run("delete", "pod", "probe")
	if after := k.run(state...); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
