package invariants

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

var (
	seed     = flag.Uint64("seed", 1, "what users, nodes and kills are chosen by")
	duration = flag.Duration("duration", 12*time.Second, "how long users work")
	every    = flag.Duration("kill-every", 2500*time.Millisecond,
		"how often a controller manager or a scheduler is killed, or gives its lease back")
)

// TestHistories: whatever users do and whenever who leads is killed or hands over, no rule is broken, and at the end
// all is as it should be.
func TestHistories(t *testing.T) {
	if *duration <= 0 || *every <= 0 {
		t.Fatalf("-duration=%v -kill-every=%v: both must be above 0", *duration, *every)
	}
	p := newPlace(t)
	candidates := p.candidates(t)
	ctx, over := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	f := newFleet(ctx, t, p, *seed)
	defer func() {
		over()
		f.busy.Wait()
		watchers.Wait()
	}()
	p.told = append(p.told, f.see)
	p.follow(ctx, t, &watchers)
	for _, c := range candidates {
		watchers.Go(func() {
			if err := c.keep(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	u := &users{place: p, ctx: ctx, t: t, rand: rand.New(rand.NewPCG(*seed, 2))}
	awaitAccount(t, p)
	u.furnish()
	working, stop := context.WithTimeout(ctx, *duration)
	defer stop()
	var workers sync.WaitGroup
	workers.Go(func() { u.work(working) })
	kills, handovers := disrupt(working, candidates, rand.New(rand.NewPCG(*seed, 3)))
	workers.Wait()
	p.settle(t)
	p.complete(t)
	over()
	f.busy.Wait()
	watchers.Wait()
	for i, v := range check(p.history) {
		if i == 20 {
			t.Fatal("and more")
		}
		t.Error(v)
	}
	p.summarize(t, kills, handovers)
}

// awaitAccount waits until the controllers work.
func awaitAccount(t *testing.T, p *place) {
	controllertest.Eventually(t, "a first round of the controllers", func() string {
		_, err := core.ServiceAccounts(p.client).Get(t.Context(), namespace, "default")
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// disrupt kills a candidate, or has it hand over, now and then until ctx ends.
func disrupt(ctx context.Context, candidates []*process, r *rand.Rand) (kills, handovers int) {
	for pause(ctx, *every/2+time.Duration(r.Int64N(int64(*every)))) {
		c := candidates[r.IntN(len(candidates))]
		if r.IntN(3) == 0 {
			c.signal(syscall.SIGTERM)
			handovers++
		} else {
			c.signal(syscall.SIGKILL)
			kills++
		}
	}
	return kills, handovers
}

// patience is how long everything may take to settle, on a machine that is busy.
const patience = 3 * time.Minute

// settle waits until everything is as users want it.
func (p *place) settle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for last := p.unsettled(ctx); last != ""; last = p.unsettled(ctx) {
		if !pause(ctx, 100*time.Millisecond) {
			t.Fatalf("waited in vain for everything to settle: %s", last)
		}
	}
}

// unsettled says what is not as users want it; "" is nothing.
func (p *place) unsettled(ctx context.Context) string {
	deployments, err := p.deployments.List(ctx, namespace, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, d := range deployments {
		if n, s := *d.Spec.Replicas, d.Status; s.ObservedGeneration != d.Generation || s.Replicas != n ||
			s.UpdatedReplicas != n || s.AvailableReplicas != n {
			return fmt.Sprintf("Deployment %s of %d: %+v", d.Name, n, s)
		}
	}
	sets, err := p.statefulSets.List(ctx, namespace, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, d := range sets {
		if n, s := *d.Spec.Replicas, d.Status; s.ObservedGeneration != d.Generation || s.Replicas != n ||
			s.AvailableReplicas != n || s.UpdateRevision != s.CurrentRevision {
			return fmt.Sprintf("StatefulSet %s of %d: %+v", d.Name, n, s)
		}
	}
	jobs, err := p.jobs.List(ctx, namespace, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, j := range jobs {
		if j.Status.CompletionTime == nil {
			return fmt.Sprintf("Job %s: %+v", j.Name, j.Status)
		}
	}
	return p.garbage(ctx)
}

// garbage names a ConfigMap that should have been collected: none of its owners is there, or it is being deleted and
// nothing holds it.
func (p *place) garbage(ctx context.Context) string {
	maps, err := p.configMaps.List(ctx, "", metav1.ListOptions{LabelSelector: "app=map"})
	if err != nil {
		return err.Error()
	}
	there := map[types.UID]string{}
	for _, m := range maps {
		there[m.UID] = m.Namespace
	}
	for _, m := range maps {
		owned := len(m.OwnerReferences) == 0
		for _, ref := range m.OwnerReferences {
			owned = owned || there[ref.UID] == m.Namespace && ref.Kind == "ConfigMap"
		}
		if !owned || m.DeletionTimestamp != nil {
			return fmt.Sprintf("ConfigMap %s is there: owners %v, finalizers %v", m.Name, m.OwnerReferences,
				m.Finalizers)
		}
	}
	return ""
}

// complete waits until everything that is there was told of.
func (p *place) complete(t *testing.T) {
	controllertest.Eventually(t, "the watchers", func() string {
		for _, s := range []string{behind(t.Context(), p, p.pods), behind(t.Context(), p, p.replicaSets),
			behind(t.Context(), p, p.deployments), behind(t.Context(), p, p.jobs),
			behind(t.Context(), p, p.attachments)} {
			if s != "" {
				return s
			}
		}
		return ""
	})
}

// summarize says how much was checked, and fails if of something that is nothing.
func (p *place) summarize(t *testing.T, kills, handovers int) {
	made, jobs, bound, collectedMaps, attached := 0, 0, 0, 0, 0
	for _, e := range p.history.events {
		switch o := e.object.(type) {
		case *corev1.Pod:
			if e.typ == watch.Added {
				made++
			}
			if e.typ == watch.Deleted && o.Spec.NodeName != "" {
				bound++
			}
		case *batchv1.Job:
			if e.typ == watch.Added {
				jobs++
			}
		case *storagev1.VolumeAttachment:
			if e.typ == watch.Added {
				attached++
			}
		case *corev1.ConfigMap:
			if e.typ == watch.Deleted && !p.history.deleted[o.UID] {
				collectedMaps++
			}
		}
	}
	t.Logf("seed %d: %d kills, %d hand-overs; %d events: %d pods made, %d ended on nodes, %d evicted, %d Jobs, %d volumes attached, %d ConfigMaps collected",
		*seed, kills, handovers, len(p.history.events), made, bound, len(p.history.evicted), jobs, attached,
		collectedMaps)
	if made == 0 || bound == 0 || attached == 0 || kills == 0 {
		t.Error("nothing was checked")
	}
}
