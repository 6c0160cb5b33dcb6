package match

import "k8s.io/apimachinery/pkg/runtime"

// Rounds is what a mutating plug-in keeps of the first round of a request for the second one. The zero value is for the
// first.
type Rounds struct {
	called map[string]bool // those that want to be called again when the object changes after them
	again  map[string]bool // of these, for whom it has
	// Left is the object as the plug-in left it.
	Left runtime.Object
}

// Call says that the one called id was called, and wants to be again when the object changes.
func (r *Rounds) Call(id string) {
	if r.called == nil {
		r.called = map[string]bool{}
	}
	r.called[id] = true
}

// Outdate says that the object is another one now than those that were called have seen.
func (r *Rounds) Outdate() {
	for id := range r.called {
		if r.again == nil {
			r.again = map[string]bool{}
		}
		r.again[id] = true
	}
	clear(r.called)
}

// Again reports whether the one called id is called in the second round.
func (r *Rounds) Again(id string) bool { return r.again[id] }

// Wanted reports whether anybody wants to be called again.
func (r *Rounds) Wanted() bool { return len(r.called)+len(r.again) > 0 }
