package resource

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// window is how many objects are asked for before their turn, and so kept in memory at most.
const window = 16

// Ahead reads the objects of many infos in their order, and asks the server for some before their turn. What is written
// in turn may change what was read early: it is for callers that bear a change between their own read and write as
// well. Only one goroutine may use it.
type Ahead struct {
	infos   []*Info
	turn    map[*Info]int
	answers []chan answer
	// asked is the first info that was not asked for yet.
	asked int
}

type answer struct {
	object *unstructured.Unstructured
	err    error
}

// NewAhead is for infos, which are to be read in this order. An info without a name, or of an object that another one
// before it may be, is not read early.
func NewAhead(infos []*Info) *Ahead {
	a := &Ahead{turn: map[*Info]int{}}
	type object struct{ kind, namespace, name string }
	seen := map[object]bool{}
	for _, i := range infos {
		o := object{i.Mapping.GroupVersionKind.Kind, i.Namespace, i.Name} // a kind's groups may be of the same objects
		if i.Name == "" || seen[o] {
			continue
		}
		seen[o] = true
		a.turn[i] = len(a.infos)
		a.infos = append(a.infos, i)
		a.answers = append(a.answers, make(chan answer, 1))
	}
	return a
}

// Get is i.Get, and reports whether the server was asked before the call. It waits for nothing else than i. Questions
// under way end with ctx.
func (a *Ahead) Get(ctx context.Context, i *Info) (early bool, err error) {
	n, ok := a.turn[i]
	if !ok {
		return false, i.Get(ctx)
	}
	end := n + window
	if n == 0 {
		end = 1 // alone, so that the others find its connection
	} else if a.asked-n > window/2 {
		end = a.asked // many at once cost less
	}
	for ; a.asked < min(end, len(a.infos)); a.asked++ {
		go a.infos[a.asked].ask(ctx, a.answers[a.asked])
	}
	got := <-a.answers[n]
	switch {
	case apierrors.IsNotFound(got.err):
		return n > 0, i.client.missing(ctx, i.Mapping, i.Namespace, got.err)
	case got.err != nil:
		return false, i.Get(ctx) // what came before it in turn may have allowed it
	}
	return n > 0, i.take(got.object, nil)
}

// ask sends what the server says of the object. It leaves the info as it is.
func (i *Info) ask(ctx context.Context, to chan<- answer) {
	path, err := ObjectPath(i.Mapping, i.Namespace, i.Name)
	if err != nil {
		to <- answer{nil, err}
		return
	}
	o, err := i.client.object(ctx, http.MethodGet, path, nil, nil, "Accept", JSON)
	to <- answer{o, err}
}
