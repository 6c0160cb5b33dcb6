package resource

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// window is the number of objects that are requested before their turn, and so the most that are kept in memory.
// Waiting for one answer after the other is most of the time of an apply without changes.
const window = 16

// Ahead reads the objects of many infos in their order, and requests some before their turn. A write in turn may change
// an object that was read early. So it is for callers that handle a change between their read and their write anyway,
// by resourceVersion or by an error. Only one goroutine may use it; its own goroutines only send to answers.
type Ahead struct {
	infos []*Info
	turn  map[*Info]int
	// answers has a channel of capacity one for each info, so that a goroutine ends even if nobody takes its answer.
	answers []chan answer
	// asked is the index of the first info that was not requested yet.
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

// Get is i.Get, and reports whether the request was sent before the call. It waits for the answer about i alone.
// Requests in flight end with ctx.
func (a *Ahead) Get(ctx context.Context, i *Info) (early bool, err error) {
	n, ok := a.turn[i]
	if !ok {
		return false, i.Get(ctx)
	}
	end := n + window
	if n == 0 {
		end = 1 // alone, so that the next requests share its connection instead of opening one each
	} else if a.asked-n > window/2 {
		end = a.asked // wait until half of the window is used: requests that leave together cost less CPU
	}
	for ; a.asked < min(end, len(a.infos)); a.asked++ {
		go a.infos[a.asked].ask(ctx, a.answers[a.asked])
	}
	got := <-a.answers[n]
	switch {
	case apierrors.IsNotFound(got.err):
		return n > 0, i.client.missing(ctx, i.Mapping, i.Namespace, got.err)
	case got.err != nil:
		return false, i.Get(ctx) // an object before it may have granted access, or defined the kind
	}
	return n > 0, i.take(got.object, nil)
}

// ask requests the object and sends the answer. It must not change the info, which the caller's goroutine reads.
func (i *Info) ask(ctx context.Context, to chan<- answer) {
	path, err := ObjectPath(i.Mapping, i.Namespace, i.Name)
	if err != nil {
		to <- answer{nil, err}
		return
	}
	o, err := i.client.object(ctx, http.MethodGet, path, nil, nil, "Accept", JSON)
	to <- answer{o, err}
}
