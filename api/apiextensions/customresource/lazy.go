package customresource

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Lazy is a Type that is compiled when somebody needs it, once for all who do, and forgotten when nobody has for a
// while: what nobody reads costs nothing but this.
type Lazy struct {
	load    func() (*apiextensionsv1.CustomResourceDefinition, error)
	version string

	mu       sync.Mutex
	compiled *Type
	used     bool // since the last Sweep
}

// NewLazy returns the version of what load returns. load is called whenever the type is compiled, by one goroutine at a
// time, and what it returns is not kept.
func NewLazy(load func() (*apiextensionsv1.CustomResourceDefinition, error), version string) *Lazy {
	return &Lazy{load: load, version: version}
}

// Get returns the compiled type. An error is that of load or of Compile; the next call tries again.
func (l *Lazy) Get() (*Type, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = true
	if l.compiled != nil {
		return l.compiled, nil
	}
	crd, err := l.load()
	if err != nil {
		return nil, err
	}
	t, err := compile(crd, l.version)
	if err != nil {
		return nil, err
	}
	l.compiled = t
	return t, nil
}

// Sweep forgets the compiled type if nobody asked for it since the last Sweep. Who has it keeps it.
func (l *Lazy) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.used {
		l.compiled = nil
	}
	l.used = false
}
