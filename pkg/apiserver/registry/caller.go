package registry

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Caller is the request that a store works for.
type Caller struct {
	// Kind is the kind that the client reads and writes, in its version.
	Kind schema.GroupVersionKind
	// Manager is who the client is in managedFields if its options name nobody: see ManagerOf.
	Manager string
	// Warn adds a warning (RFC 7234 code 299) to the answer.
	Warn func(string)
}

type callerKey struct{}

// WithCaller returns a copy of ctx in which stores work for a request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// callerFrom returns the request of ctx, or the server itself.
func callerFrom(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c
	}
	return &Caller{Manager: Self, Warn: func(string) {}}
}

// VersionAsked is the version of obj's kind that the client of ctx reads and writes; that of obj if it asks for another
// kind.
func VersionAsked(ctx context.Context, obj runtime.Object) schema.GroupVersion {
	is := obj.GetObjectKind().GroupVersionKind()
	if asked := callerFrom(ctx).Kind; asked.GroupKind() == is.GroupKind() {
		return asked.GroupVersion()
	}
	return is.GroupVersion()
}

// warnOneByOne returns a copy of ctx in which several goroutines may warn the request's client at the same time.
func warnOneByOne(ctx context.Context) context.Context {
	c := *callerFrom(ctx)
	var mu sync.Mutex
	warn := c.Warn
	c.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warn(text)
	}
	return WithCaller(ctx, c)
}

// Self is the server's own name in managedFields.
const Self = "kube-apiserver"

// ManagerOf is the name in managedFields of a client with this user agent: what precedes the first "/", without what
// cannot be printed, and no longer than a name may be.
func ManagerOf(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	plain := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain && len(name) <= validation.FieldManagerMaxLength {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// writer is in whose name ctx's request writes an object through a subresource.
func (g *Generic) writer(ctx context.Context, manager, subresource string) Writer {
	c := callerFrom(ctx)
	return Writer{Name: cmp.Or(manager, c.Manager), Version: g.requested(c).Version, Subresource: subresource,
		At: g.Now()}
}

// requested is the store's kind as the client knows it. What a request for another kind leads to is done in the stored
// version.
func (g *Generic) requested(c *Caller) schema.GroupVersionKind {
	if c.Kind.GroupKind() == g.Row.GVK.GroupKind() {
		return c.Kind
	}
	return g.Row.GVK
}
