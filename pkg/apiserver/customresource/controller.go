package customresource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/apiextensions"
	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// Definitions is the resource that is followed.
func Definitions() schema.GroupResource {
	return schema.GroupResource{Group: v1.GroupName, Resource: "customresourcedefinitions"}
}

// Config is what a Controller works with. All is required.
type Config struct {
	// Catalog serves, when Run begins, the definitions themselves and everything that they cannot take the place of.
	Catalog *catalog.Catalog
	// Definitions is where the definitions are stored.
	Definitions follow.Resource
	// Entry makes what the catalog takes of a row; scale is where its objects keep their replicas, nil if they have
	// none.
	Entry func(row *resources.Row, scale *Scale) (catalog.Entry, error)
	// Hook is the webhook of a definition that converts by one.
	Hook func(*v1.WebhookClientConfig) (Hook, error)
	// Observe receives each call of such a webhook.
	Observe func(took time.Duration, err error)
	Now     func() time.Time
	// UID draws one for each ConversionReview.
	UID func() string
	Log *slog.Logger
}

// Controller keeps what is served as the definitions say.
type Controller struct {
	Config
	follower *follow.Follower
	wake     chan struct{}
	ready    chan struct{} // closed when all definitions that there were are served

	mu      sync.Mutex
	known   map[string]*definition // by name
	dirty   map[string]bool        // names of definitions to look at
	drained map[string]bool        // whose objects are being deleted

	served map[schema.GroupResource]*running // used by Run alone
	// idle has the marks of definitions that serve nothing, by name; used by Run alone
	idle   map[string]string
	static map[schema.GroupVersion]bool // what others serve, all the time
}

// running is a definition that is served.
type running struct {
	*served
	entry catalog.Entry
}

// New returns a Controller; Run has it work.
func New(cfg Config) *Controller {
	c := &Controller{Config: cfg, wake: make(chan struct{}, 1), ready: make(chan struct{}),
		known: map[string]*definition{}, dirty: map[string]bool{},
		drained: map[string]bool{}, served: map[schema.GroupResource]*running{}, idle: map[string]string{},
		static: map[schema.GroupVersion]bool{}}
	from := cfg.Definitions
	decode := from.Decode
	from.Decode = func(value []byte) (runtime.Object, error) {
		load := func() (*v1.CustomResourceDefinition, error) {
			obj, err := decode(value)
			if err != nil {
				return nil, err
			}
			crd, ok := obj.(*v1.CustomResourceDefinition)
			if !ok {
				return nil, fmt.Errorf("a definition is a %T", obj)
			}
			return crd, nil
		}
		crd, err := load()
		if err != nil {
			return nil, err
		}
		return newDefinition(crd, load)
	}
	c.follower = follow.New(from, c, cfg.Log)
	return c
}

// Ready reports whether everything is served that the definitions define which there were at the start.
func (c *Controller) Ready() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// Complete is closed when Ready tells so.
func (c *Controller) Complete() <-chan struct{} { return c.ready }

// Put implements follow.Handler.
func (c *Controller) Put(_ string, obj runtime.Object) {
	d, ok := obj.(*definition)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.known[d.crd.Name]
	c.known[d.crd.Name] = d
	c.dirty[d.crd.Name] = true
	if was != nil && was.mark != d.mark {
		c.reconsider(was.group())
	}
	c.signal()
}

// Delete implements follow.Handler.
func (c *Controller) Delete(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := key[len(c.Config.Definitions.Prefix):]
	if was := c.known[name]; was != nil {
		delete(c.known, name)
		c.dirty[name] = true
		c.reconsider(was.group())
	}
	c.signal()
}

// reconsider has those of a group looked at again that do not have their names: there may be free ones now. mu is held.
func (c *Controller) reconsider(group string) {
	for name, d := range c.known {
		if d.group() == group && !apiextensions.IsTrue(d.crd, v1.NamesAccepted) {
			c.dirty[name] = true
		}
	}
}

func (c *Controller) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// again has a definition looked at once more after a while.
func (c *Controller) again(name string) {
	time.AfterFunc(retryAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dirty[name] = true
		c.signal()
	})
}

const (
	// retryAfter is how long after a failure a definition is looked at again.
	retryAfter = time.Second
	// sweepEvery is after how long without use a version's schema leaves memory, and twice that at most.
	sweepEvery = 5 * time.Minute
)

// Run follows the definitions until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	for _, gv := range c.Catalog.Snapshot().GroupVersions() {
		c.static[gv] = true
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.follower.Run(ctx) })
	group.Go(func() error {
		select { // what there is comes in one piece: one change of the catalog, not one for each
		case <-c.follower.Synced():
		case <-ctx.Done():
			return nil
		}
		c.round(ctx, group)
		close(c.ready)
		sweep := time.NewTicker(sweepEvery)
		defer sweep.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-sweep.C:
				for _, r := range c.served {
					r.sweep()
				}
			case <-c.wake:
				c.round(ctx, group)
			}
		}
	})
	return group.Wait()
}

// round looks at all definitions that are dirty: first they are served as they say, then their conditions follow.
func (c *Controller) round(ctx context.Context, group *errgroup.Group) {
	c.mu.Lock()
	names, view := c.dirty, maps.Clone(c.known)
	c.dirty = map[string]bool{}
	c.mu.Unlock()
	c.serve(names, view)
	for _, name := range inOrder(names, view) {
		d := view[name]
		if d.terminating() {
			c.drain(ctx, group, d)
			continue
		}
		if err := c.settle(ctx, d, view); err != nil && ctx.Err() == nil {
			c.Log.Warn("the conditions of a definition cannot be written", "name", name, "err", err, "retry",
				retryAfter)
			c.again(name)
		}
	}
}

// errSettled ends an update that would change nothing. It is a Status error, which stores hand on as it is.
var errSettled error = apierrors.NewConflict(Definitions(), "", errors.New("it is as it should be"))

// definitions is the store of the definitions.
func (c *Controller) definitions() (registry.Store, error) {
	if s := c.Catalog.Store(Definitions()); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%s are not served", Definitions())
}
