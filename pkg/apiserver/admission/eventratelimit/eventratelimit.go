// Package eventratelimit is the admission plug-in EventRateLimit, which is off unless it is enabled: it bounds how many
// events are written a second, altogether, by namespace, by user, or by source and object, so that whoever writes very
// many does not fill the store.
package eventratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"bonsai/pkg/apiserver/admission"
)

// APIVersion and Kind are those of a Configuration.
const (
	APIVersion = "eventratelimit.admission.k8s.io/v1alpha1"
	Kind       = "Configuration"
)

// defaultCacheSize is how many namespaces, users or sources a limit remembers that does not say it. The one whose last
// event is the oldest makes room, and then begins with a full bucket.
const defaultCacheSize = 4096

// maxShown bounds what an answer shows of a key, in bytes.
const maxShown = 256

// Configuration is what the configuration file says.
type Configuration struct {
	metav1.TypeMeta
	Limits []Limit `json:"limits"`
}

// Limit is one bound. An event must keep all of them.
type Limit struct {
	// Type is Server, Namespace, User or SourceAndObject: what shares the bound.
	Type string `json:"type"`
	// QPS are the events a second, Burst those at once after a pause.
	QPS   int32 `json:"qps"`
	Burst int32 `json:"burst"`
	// CacheSize bounds what is remembered; 0: 4096. Of a Server there is one.
	CacheSize int32 `json:"cacheSize,omitempty"`
}

// The types of limits.
const (
	server          = "Server"
	namespace       = "Namespace"
	user            = "User"
	sourceAndObject = "SourceAndObject"
)

// Validate reports what is wrong with the configuration.
func (c *Configuration) Validate() error {
	at := field.NewPath("limits")
	if len(c.Limits) == 0 {
		return field.Invalid(at, c.Limits, "must not be empty")
	}
	var errs field.ErrorList
	for i, l := range c.Limits {
		at := at.Index(i)
		switch l.Type {
		case server:
		case namespace, user, sourceAndObject:
			if l.CacheSize < 0 {
				errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
			}
		default:
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type,
				[]string{server, namespace, user, sourceAndObject}))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
	}
	return errs.ToAggregate()
}

type plugin struct{ limits []*bucketsOf }

// New returns the plug-in. Without a configuration it bounds nothing, and must not be enabled.
func New(c *Configuration) admission.Plugin {
	p := plugin{}
	if c != nil {
		for _, l := range c.Limits {
			size := int(l.CacheSize)
			if l.Type == server {
				size = 1
			} else if size == 0 {
				size = defaultCacheSize
			}
			p.limits = append(p.limits, &bucketsOf{Limit: l, clock: clock.RealClock{}, known: lru.New(size)})
		}
	}
	return admission.Plugin{Name: "EventRateLimit", Validator: p}
}

// Validate implements admission.Validator. All limits count each event, also one that another limit refuses.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	event, ok := a.Object.(*corev1.Event)
	if !ok || !a.Is(corev1.Resource("events")) || a.DryRun ||
		a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	var errs []error
	for _, l := range p.limits {
		key := l.key(a, event)
		if !l.bucket(key).TryAccept() {
			errs = append(errs, fmt.Errorf("limit reached on type %v for key %v", l.Type, shown(key)))
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	return nil
}

// bucketsOf are the buckets of one limit.
type bucketsOf struct {
	Limit
	clock clock.PassiveClock
	mu    sync.Mutex // so that two first events of a key share one bucket
	known *lru.Cache
}

func (b *bucketsOf) bucket(key string) flowcontrol.PassiveRateLimiter {
	id := idOf(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.known.Get(id); ok {
		return v.(flowcontrol.PassiveRateLimiter)
	}
	made := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(b.QPS), int(b.Burst), b.clock)
	b.known.Add(id, made)
	return made
}

// idOf is how a key is remembered. The source of an event may be as long as the event, so that the keys would hold
// gigabytes.
func idOf(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// shown is the beginning of a key.
func shown(key string) string {
	if len(key) > maxShown {
		return strings.ToValidUTF8(key[:maxShown], "") + "…"
	}
	return key
}

// key is what shares a bucket.
func (b *bucketsOf) key(a *admission.Attributes, e *corev1.Event) string {
	switch b.Type {
	case namespace:
		return a.Namespace
	case user:
		if a.User != nil {
			return a.User.Name
		}
	case sourceAndObject:
		o := &e.InvolvedObject
		return strings.Join([]string{e.Source.Component, e.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID),
			o.APIVersion}, "")
	}
	return ""
}
