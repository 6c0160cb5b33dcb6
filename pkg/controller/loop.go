package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/trace"
)

// Result says when a key that was reconciled without an error is to be looked at again. The zero Result: when it
// changes.
type Result struct {
	// RequeueAfter, if positive, brings the key back after this time.
	RequeueAfter time.Duration
	// Backoff brings the key back after a growing delay, as an error would, but without being one: something outside is
	// awaited that no watch reports.
	Backoff bool
}

// TerminalError wraps an error that trying again cannot heal: the key is dropped until its object changes.
func TerminalError(err error) error { return &terminalError{err} }

type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }

// Reconcile brings the world one step closer to what the object named by key asks for.
type Reconcile[K comparable] func(ctx context.Context, key K) (Result, error)

// LoopConfig describes a Loop.
type LoopConfig struct {
	// Name labels metrics: upstream's name of the queue, where it has one for that work; required.
	Name string
	// Workers is how many keys are reconciled at once; at least 1.
	Workers int
	// MaxBackoff caps the delay between tries of a failing key, which starts at 5 ms and doubles. Default one minute.
	MaxBackoff time.Duration
	Log        *slog.Logger
	Metrics    *Metrics
}

// Loop is a queue of keys and the workers that reconcile them. A key that is added while it is being reconciled is
// reconciled once more afterwards; adding it several times before that costs nothing.
type Loop[K comparable] struct {
	cfg       LoopConfig
	reconcile Reconcile[K]
	queue     workqueue.TypedRateLimitingInterface[K]
	synced    []cache.InformerSynced
}

// NewLoop returns a loop that does nothing until Run. The Tracer of Run's context records the rounds that make objects.
func NewLoop[K comparable](cfg LoopConfig, reconcile Reconcile[K]) *Loop[K] {
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = time.Minute
	}
	cfg.Workers = max(cfg.Workers, 1)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](5*time.Millisecond, cfg.MaxBackoff)
	qc := workqueue.TypedRateLimitingQueueConfig[K]{Name: cfg.Name}
	if cfg.Metrics != nil {
		qc.MetricsProvider, qc.Clock = cfg.Metrics.queue, cfg.Metrics.ticks
	}
	return &Loop[K]{cfg: cfg, reconcile: reconcile, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, qc)}
}

// Add asks for key to be reconciled now.
func (l *Loop[K]) Add(key K) { l.queue.Add(key) }

// AddAfter asks for key to be reconciled after d.
func (l *Loop[K]) AddAfter(key K, d time.Duration) { l.queue.AddAfter(key, d) }

// WaitFor makes Run wait until synced returns true. Call it before Run.
func (l *Loop[K]) WaitFor(synced cache.InformerSynced) { l.synced = append(l.synced, synced) }

// Run waits for the caches, reconciles until ctx ends, and returns after the last worker did.
func (l *Loop[K]) Run(ctx context.Context) error {
	defer l.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), l.synced...) {
		return nil
	}
	var workers sync.WaitGroup
	for range l.cfg.Workers {
		workers.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	workers.Wait()
	return nil
}

// next reconciles one key; false says that the queue is closed.
func (l *Loop[K]) next(ctx context.Context) bool {
	key, closed := l.queue.Get()
	if closed {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	start := time.Now()
	res, err := l.safely(ctx, key)
	l.cfg.Metrics.reconciled(l.cfg.Name, outcome(res, err), time.Since(start))
	l.settle(ctx, key, res, err)
	return true
}

// settle decides when the key comes back.
func (l *Loop[K]) settle(ctx context.Context, key K, res Result, err error) {
	var terminal *terminalError
	switch {
	case err != nil && ctx.Err() != nil:
	case NamespaceEnding(err):
		// The object goes with its namespace. What is to be done until then its own changes will bring back.
		l.queue.Forget(key)
		l.cfg.Log.Debug("reconcile ended with the namespace", "key", key, "err", err)
	case errors.As(err, &terminal):
		l.queue.Forget(key)
		l.cfg.Log.Error("reconcile failed for good", "key", key, "err", err)
	case err != nil:
		l.logRetry(key, err)
		l.queue.AddRateLimited(key)
	case res.RequeueAfter > 0:
		l.queue.Forget(key)
		l.queue.AddAfter(key, res.RequeueAfter)
	case res.Backoff:
		l.queue.AddRateLimited(key)
	default:
		l.queue.Forget(key)
	}
}

// NamespaceEnding reports whether err says that nothing can be created in a namespace any more, because it is being
// deleted.
func NamespaceEnding(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// logRetry logs conflicts quietly: another writer was faster, and the next try sees what it wrote.
func (l *Loop[K]) logRetry(key K, err error) {
	if apierrors.IsConflict(err) {
		l.cfg.Log.Debug("reconcile lost a race, trying again", "key", key, "err", err)
		return
	}
	l.cfg.Log.Warn("reconcile failed, trying again", "key", key, "tries", l.queue.NumRequeues(key)+1, "err", err)
}

// safely turns a panic of Reconcile into an error of this key alone.
func (l *Loop[K]) safely(ctx context.Context, key K) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.cfg.Metrics.panicked(l.cfg.Name)
			l.cfg.Log.Error("reconcile panicked", "key", key, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("reconcile panicked: %v", p)
		}
	}()
	return l.traced(ctx, key)
}

// traced reconciles a key, and records the round if it makes anything.
func (l *Loop[K]) traced(ctx context.Context, key K) (Result, error) {
	round := trace.From(ctx).Round(l.cfg.Name, time.Now())
	if round == nil {
		return l.reconcile(ctx, key)
	}
	res, err := l.reconcile(apiclient.WithCreated(ctx,
		func(kind schema.GroupVersionKind, resource string, made metav1.Object) {
			round.Made(trace.About(kind, resource, made), time.Now())
		}), key)
	round.End(time.Now(), roundError(err))
	return res, err
}

// errRound stands for a round's error in its span: the error's own text may repeat parts of specs.
var errRound = errors.New("the round failed")

func roundError(err error) error {
	if err != nil {
		return errRound
	}
	return nil
}

func outcome(res Result, err error) string {
	switch {
	case err != nil:
		return "error"
	case res.RequeueAfter > 0 || res.Backoff:
		return "requeue"
	default:
		return "success"
	}
}
