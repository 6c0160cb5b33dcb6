package webhooks

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/webhook"
)

// hook is one webhook of a configuration, read once.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	// uid tells webhooks of one name in several configurations apart.
	uid string
	// configuration is the name of its configuration.
	configuration string
	to            webhook.Hook
	timeout       time.Duration
	version       string // of the review
	fixed         bool   // a file describes it, not an object of the API
	selectors     match.Selectors
	conditions    *match.Conditions
}

// ignores tells that a webhook that cannot be asked is as good as one that agrees.
func (h *hook) ignores() bool {
	return h.FailurePolicy != nil && *h.FailurePolicy == admissionregistrationv1.Ignore
}

// configurations are all configurations of one kind. It implements follow.Handler.
type configurations struct {
	credentials webhook.Directory

	mu    sync.Mutex         // one writer at a time
	byKey map[string][]*hook // guarded by mu
	now   atomic.Pointer[table]
}

// current is the table of what is known now.
func (c *configurations) current() *table {
	if t := c.now.Load(); t != nil {
		return t
	}
	return &table{}
}

// Put implements follow.Handler.
func (c *configurations) Put(key string, obj runtime.Object) {
	c.change(key, hooksOf(obj, c.credentials))
}

// Delete implements follow.Handler.
func (c *configurations) Delete(key string) { c.change(key, nil) }

// fixed is the follow.Handler of configurations that files describe.
type fixed configurations

// beforeAll begins the keys of what files describe: it is asked first.
const beforeAll = "\x00"

// Put implements follow.Handler.
func (f *fixed) Put(key string, obj runtime.Object) {
	c := (*configurations)(f)
	hooks := hooksOf(obj, c.credentials)
	for _, h := range hooks {
		h.fixed, h.uid = true, beforeAll+h.uid
	}
	c.change(beforeAll+key, hooks)
}

// Delete implements follow.Handler.
func (f *fixed) Delete(key string) { (*configurations)(f).change(beforeAll+key, nil) }

// change makes the next table. Webhooks are asked in the order of their configurations' names.
func (c *configurations) change(key string, hooks []*hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string][]*hook{}
	}
	if len(hooks) == 0 {
		delete(c.byKey, key)
	} else {
		c.byKey[key] = hooks
	}
	next := &table{}
	for _, k := range slices.Sorted(maps.Keys(c.byKey)) {
		next.hooks = append(next.hooks, c.byKey[k]...)
	}
	c.now.Store(next)
}

// hooksOf reads the webhooks of a configuration, with the credentials that they are shown. Validating ones are taken as
// mutating ones that are never called again.
func hooksOf(obj runtime.Object, credentials webhook.Directory) []*hook {
	var name string
	var all []admissionregistrationv1.MutatingWebhook
	switch c := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		name, all = c.Name, c.Webhooks
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		name = c.Name
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			all = append(all, admissionregistrationv1.MutatingWebhook{
				Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy,
				MatchPolicy:       h.MatchPolicy,
				NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects,
				TimeoutSeconds: h.TimeoutSeconds, AdmissionReviewVersions: h.AdmissionReviewVersions,
				MatchConditions: h.MatchConditions,
			})
		}
	}
	out := make([]*hook, len(all))
	for i := range all {
		out[i] = newHook(all[i], name, fmt.Sprintf("%s/%d", name, i))
		out[i].to.Credentials = credentials.For(&out[i].to)
	}
	return out
}

// defaultTimeout is of webhooks that were stored without one.
const defaultTimeout = 10 * time.Second

func newHook(h admissionregistrationv1.MutatingWebhook, configuration, uid string) *hook {
	out := &hook{MutatingWebhook: h, uid: uid, configuration: configuration, timeout: defaultTimeout,
		selectors:  match.NewSelectors(h.NamespaceSelector, h.ObjectSelector),
		conditions: match.NewConditions(h.MatchConditions, expression.Scope{Authorizer: true})}
	out.to.CABundle = h.ClientConfig.CABundle
	if u := h.ClientConfig.URL; u != nil {
		out.to.URL = *u
	}
	if s := h.ClientConfig.Service; s != nil {
		out.to.Service = &webhook.Service{Namespace: s.Namespace, Name: s.Name}
		if s.Path != nil {
			out.to.Service.Path = *s.Path
		}
		if s.Port != nil {
			out.to.Service.Port = *s.Port
		}
	}
	if h.TimeoutSeconds != nil {
		out.timeout = time.Duration(*h.TimeoutSeconds) * time.Second
	}
	for _, v := range h.AdmissionReviewVersions {
		if v == v1 || v == v1beta1 {
			out.version = v
			break
		}
	}
	return out
}
