package invariants

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/batch"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/policy"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller/controllertest"
)

// place is an API server, those who write there, and what is recorded of it.
type place struct {
	*controllertest.Cluster
	client       *apiclient.Client
	pods         *apiclient.Resource[*corev1.Pod]
	nodes        *apiclient.Resource[*corev1.Node]
	configMaps   *apiclient.Resource[*corev1.ConfigMap]
	claims       *apiclient.Resource[*corev1.PersistentVolumeClaim]
	volumes      *apiclient.Resource[*corev1.PersistentVolume]
	attachments  *apiclient.Resource[*storagev1.VolumeAttachment]
	deployments  *apiclient.Resource[*appsv1.Deployment]
	replicaSets  *apiclient.Resource[*appsv1.ReplicaSet]
	statefulSets *apiclient.Resource[*appsv1.StatefulSet]
	jobs         *apiclient.Resource[*batchv1.Job]
	budgets      *apiclient.Resource[*policyv1.PodDisruptionBudget]

	mu sync.Mutex
	// history grows until all is settled; versions are those of the objects that are there, by what was told so far.
	history  history
	versions map[types.UID]uint64
	told     []func(event)
}

func newPlace(t *testing.T) *place {
	cluster := controllertest.Start(t)
	c := cluster.Client(t)
	return &place{Cluster: cluster, client: c, pods: core.Pods(c), nodes: core.Nodes(c), configMaps: core.ConfigMaps(c),
		claims:  core.PersistentVolumeClaims(c),
		volumes: core.PersistentVolumes(c), attachments: storage.VolumeAttachments(c), deployments: apps.Deployments(c),
		replicaSets:  apps.ReplicaSets(c),
		statefulSets: apps.StatefulSets(c), jobs: batch.Jobs(c), budgets: policy.PodDisruptionBudgets(c),
		versions: map[types.UID]uint64{},
		history:  history{deleted: map[types.UID]bool{}, evicted: map[types.UID]bool{}, ended: map[types.UID]bool{}}}
}

// note marks an object in one of the history's sets.
func (p *place) note(set map[types.UID]bool, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set[uid] = true
}

// follow records every change of the kinds that the rules are about until ctx ends, and tells the others of it.
func (p *place) follow(ctx context.Context, t *testing.T, g *sync.WaitGroup) {
	record(ctx, t, g, p, p.pods)
	record(ctx, t, g, p, p.nodes)
	record(ctx, t, g, p, p.configMaps)
	record(ctx, t, g, p, p.claims)
	record(ctx, t, g, p, p.volumes)
	record(ctx, t, g, p, p.attachments)
	record(ctx, t, g, p, p.deployments)
	record(ctx, t, g, p, p.replicaSets)
	record(ctx, t, g, p, p.statefulSets)
	record(ctx, t, g, p, p.jobs)
	record(ctx, t, g, p, p.budgets)
}

// record follows one kind. The server ends a watch now and then: it goes on after the last version, without a gap.
func record[T apiclient.Object](ctx context.Context, t *testing.T, g *sync.WaitGroup, p *place,
	r *apiclient.Resource[T]) {
	g.Go(func() {
		last := uint64(0)
		for ctx.Err() == nil {
			from := ""
			if last > 0 {
				from = strconv.FormatUint(last, 10)
			}
			w, err := r.Watch(ctx, "", metav1.ListOptions{ResourceVersion: from})
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("watching %s: %v", r.GVR().Resource, err)
				}
				return
			}
			for e := range w.ResultChan() {
				o, ok := e.Object.(T)
				if !ok {
					if ctx.Err() == nil {
						t.Errorf("watching %s: %v", r.GVR().Resource, e.Object)
					}
					break
				}
				if version := versionOf(o); version > last || from == "" {
					last = max(last, version)
					p.tell(event{e.Type, version, o})
				}
			}
			w.Stop()
		}
	})
}

func versionOf(o metav1.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err)
	}
	return v
}

func (p *place) tell(e event) {
	p.mu.Lock()
	p.history.events = append(p.history.events, e)
	put(p.versions, e.object.GetUID(), e.version, e.typ == watch.Deleted)
	told := p.told
	p.mu.Unlock()
	for _, f := range told {
		f(e)
	}
}

// behind says what of the objects that are there now was not told yet; "" is nothing.
func behind[T apiclient.Object](ctx context.Context, p *place, r *apiclient.Resource[T]) string {
	all, err := r.List(ctx, "", metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range all {
		if p.versions[o.GetUID()] < versionOf(o) {
			return fmt.Sprintf("%s %s was not told of at %s", r.GVR().Resource, name(o), o.GetResourceVersion())
		}
	}
	return ""
}

// process is a program that is started again whenever it has ended: by a signal, or because it has lost its lease on a
// busy machine.
type process struct {
	path, log string
	args      []string

	mu  sync.Mutex
	cmd *exec.Cmd
}

// keep runs the program until ctx ends; it dies with the test process too.
func (p *process) keep(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, p.path, p.args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		p.mu.Lock()
		p.cmd = cmd
		p.mu.Unlock()
		_ = cmd.Wait()
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// signal signals the program, if it runs.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// candidates are two controller managers and two schedulers, of which one each leads. A lease of five seconds lets a
// leader keep it on a machine that is busy, and others take over soon enough for a short test.
func (p *place) candidates(t *testing.T) []*process {
	var out []*process
	dir := t.TempDir()
	election := []string{"--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=250ms", "--bind-address=127.0.0.1"}
	for _, c := range []struct {
		name, kubeconfig string
		flags            []string
	}{
		{"kube-controller-manager", p.Kubeconfig,
			[]string{"--use-service-account-credentials", "--service-account-private-key-file=" + p.KeyFile,
				"--node-monitor-grace-period=2h"}},
		{"kube-scheduler", p.SchedulerKubeconfig, nil},
	} {
		path, err := filepath.Abs(filepath.Join("..", "..", "bin", c.name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skipf("SKIPPED: no %s at %q: make components", c.name, path)
		}
		for i := range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			port := l.Addr().(*net.TCPAddr).Port
			defer l.Close()
			args := append([]string{"--kubeconfig=" + c.kubeconfig, "--authentication-kubeconfig=" + c.kubeconfig,
				"--authorization-kubeconfig=" + c.kubeconfig, "--secure-port=" + strconv.Itoa(port)}, election...)
			out = append(out, &process{path: path, log: filepath.Join(dir, fmt.Sprint(c.name, "-", i, ".log")),
				args: append(args, c.flags...)})
		}
	}
	t.Cleanup(func() {
		for _, c := range out {
			if text, err := os.ReadFile(c.log); err == nil && t.Failed() {
				t.Logf("end of %s:\n%s", c.log, text[max(0, len(text)-2000):])
			}
			if text, err := os.ReadFile(c.log); err == nil && strings.Contains(string(text), "panic") {
				t.Errorf("%s: a panic", c.log)
			}
		}
	})
	return out
}

// pause waits; false says that ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
