package store

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	of "bonsai/pkg/traces"
)

// uid is the UID of object number n, and the trace that it has.
func uid(n int) (types.UID, of.TraceID) {
	u := types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", n+1))
	id, ok := of.TraceOf(u)
	if !ok {
		panic(u)
	}
	return u, id
}

// pod returns a span of pod number n in namespace "a" or "b".
func pod(n, span int, links ...of.Link) *of.Record {
	u, id := uid(n)
	return &of.Record{Trace: id, ID: of.SpanID{1, byte(span >> 8), byte(span)}, Name: "step", Component: "kubelet",
		Start: int64(span) * 1000, End: int64(span)*1000 + 500, Links: links,
		Object: &traces.Object{Resource: "pods", Kind: "Pod", Namespace: []string{"a", "b"}[n%2],
			Name: fmt.Sprintf("pod-%d", n), UID: u}}
}

// request returns a span of request number n, below the span parent.
func request(n, span, parent int) *of.Record {
	r := &of.Record{Trace: of.TraceID{0xff, byte(n >> 8), byte(n)}, ID: of.SpanID{2, byte(span >> 8), byte(span)},
		Name: "POST", Component: "kube-apiserver", Start: int64(span) * 1000, End: int64(span)*1000 + 100}
	if parent > 0 {
		r.Parent = of.SpanID{2, byte(parent >> 8), byte(parent)}
	}
	return r
}

// to is a link to a span of a request; 0 is all of it.
func to(n, span int) of.Link {
	r := request(n, span, 0)
	l := of.Link{Trace: r.Trace, Relation: traces.RelationRequest}
	if span > 0 {
		l.Span = r.ID
	}
	return l
}

// names returns the starts of a trace's spans: pod's and request's own numbers, in thousands.
func starts(t *traces.Trace) (out []int64) {
	for _, s := range t.Spans {
		out = append(out, s.Start.UnixNano()/1000)
	}
	return out
}

// saved collects what a store saves.
func saved(to *[][]byte) Save {
	return func(records [][]byte) { *to = append(*to, records...) }
}

// add adds a span whose records nobody needs.
func add(s *Store, r *of.Record) of.Reason { return s.Add(r, func([][]byte) {}) }

// by returns the span as a node sends it.
func by(node string, r *of.Record) *of.Record {
	r.Sender = node
	return r
}

// told is that a sender told something of an object.
type told struct {
	sender string
	trace  of.TraceID
}

// model is what a store must do, plainly: the objects and what each node told of them, the last active first.
type model struct {
	objects []of.TraceID
	parts   []told
}

func first[T comparable](list []T, x T) []T {
	return slices.Insert(slices.DeleteFunc(list, func(y T) bool { return x == y }), 0, x)
}

func (m *model) add(r *of.Record) {
	m.objects = first(m.objects, r.Trace)
	m.parts = first(m.parts, told{r.Sender, r.Trace})
}

// follow removes from the model what the store has not, if the store was right to forget it. Objects go as wholes, the
// oldest of all first. A node's part goes if it is the node's oldest, and no node holds more than that one did.
func (m *model) follow(s *Store) error {
	held, most, kept := map[told]bool{}, int64(0), map[string]int64{}
	for _, t := range s.objects {
		for _, p := range t.parts {
			held[told{p.node.name, t.id}] = true
		}
		if t.ofControlPlane() > 0 {
			held[told{"", t.id}] = true
		}
	}
	for name, n := range s.nodes {
		kept[name], most = n.bytes, max(most, n.bytes)
	}
	whole := map[of.TraceID]bool{} // gone, and older than all that are kept
	for _, id := range slices.Backward(m.objects) {
		if s.objects[id] != nil {
			break
		}
		whole[id] = true
	}
	older := map[string]bool{} // senders with a younger part that was kept
	for i := len(m.parts) - 1; i >= 0; i-- {
		switch p := m.parts[i]; {
		case held[p]:
			older[p.sender] = true
		case whole[p.trace]:
		case p.sender == "":
			if s.objects[p.trace].dropped == 0 {
				return fmt.Errorf("what the control plane told of %s is gone", p.trace)
			}
		case older[p.sender]:
			return fmt.Errorf("%v is gone and an older part is not", p)
		case kept[p.sender]+s.cfg.MaxBytes/objectShare < most:
			return fmt.Errorf("%v is gone: its sender holds %d, and another node %d", p, kept[p.sender], most)
		}
	}
	m.parts = slices.DeleteFunc(m.parts, func(p told) bool { return !held[p] })
	m.objects = slices.DeleteFunc(m.objects, func(id of.TraceID) bool { return s.objects[id] == nil })
	if len(m.objects) != len(s.objects) || len(m.parts) != len(held) {
		return fmt.Errorf("%d objects and not %d, %d parts and not %d", len(s.objects), len(m.objects), len(held),
			len(m.parts))
	}
	return nil
}

// TestHistories: a store that takes random spans of several senders never has more than its bytes, forgets what it may
// forget alone, and its figures are those that one gets by counting.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 38))
		s := New(Config{MaxBytes: 64 << 10, MaxSpans: 8})
		m := &model{}
		for step := range 2000 {
			var r *of.Record
			if n := rnd.IntN(1 + rnd.IntN(120)); rnd.IntN(3) == 0 {
				r = request(n, rnd.IntN(12), rnd.IntN(12))
			} else {
				r = pod(n, rnd.IntN(40))
				// One sender after the other floods, with objects of its own and of others.
				r.Sender = []string{"", "n1", "n2", "n3"}[rnd.IntN(4)]
				if rnd.IntN(3) > 0 {
					r.Sender = []string{"n1", "", "n2", ""}[step/500]
				}
				if rnd.IntN(3) == 0 {
					r.Links = []of.Link{to(rnd.IntN(120), rnd.IntN(3)), to(rnd.IntN(120), 0)}
				}
			}
			r.Attributes = []of.Attribute{{Key: "k", Value: strings.Repeat("v", rnd.IntN(300))}}
			if why := add(s, r); why == of.Kept && r.Object != nil {
				m.add(r)
			}
			if st := s.Stats(); st.Bytes > s.cfg.MaxBytes || st.Evicted > 0 && st.Bytes < s.cfg.MaxBytes/2 {
				t.Fatalf("seed %d, step %d: %+v", seed, step, st)
			}
			if err := m.follow(s); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step%8 > 0 {
				continue // it costs more than all the rest
			}
			if err := consistent(s); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if st := s.Stats(); st.Evicted == 0 || st.Cut == 0 || st.Requests == 0 || st.Overfull == 0 {
			t.Errorf("seed %d tries too little: %+v", seed, st)
		}
	}
}

// consistent counts everything again.
func consistent(s *Store) error {
	var bytes, unlinked, ofNodes int64
	spans, refs := 0, map[of.TraceID]int{}
	count := func(t *trace) (n int64, parts map[*part]int64) {
		own := traceOverhead + int64(cap(t.spans)-len(t.spans))*spanOverhead +
			int64(cap(t.links))*int64(unsafe.Sizeof(link{})) + size(t.object.Namespace) + size(string(t.object.UID)) +
			size(t.object.Group) + size(t.object.Resource) + size(t.object.Kind) + size(t.object.Name)
		n, parts = own, map[*part]int64{}
		for _, p := range t.parts {
			parts[p] += partOverhead
			n += partOverhead
		}
		byControlPlane := 0
		for _, span := range t.spans {
			n += span.size()
			if span.from == nil {
				byControlPlane++
			} else {
				parts[span.from] += span.size()
			}
		}
		if byControlPlane == 0 && len(t.parts) > 0 {
			parts[t.parts[0]] += own
		}
		spans += len(t.spans)
		return n, parts
	}
	nodes := map[string]int64{}
	for id, t := range s.objects {
		n, parts := count(t)
		if n != t.bytes || len(t.spans) > s.cfg.MaxSpans || len(t.links) > maxLinks || len(parts) != len(t.parts) {
			return fmt.Errorf("object %s has %d bytes and not %d, %d spans, %d links, %d parts", id, n, t.bytes,
				len(t.spans), len(t.links), len(parts))
		}
		for p, n := range parts {
			if n != p.bytes || p.trace != t {
				return fmt.Errorf("object %s has %d bytes and not %d of %s", id, n, p.bytes, p.node.name)
			}
			nodes[p.node.name] += n
			ofNodes += n
		}
		bytes += t.bytes
		for _, l := range t.links {
			refs[l.trace]++
		}
	}
	for id, q := range s.requests {
		if n, parts := count(q); n != q.bytes || q.refs != refs[id] || (q.refs == 0) != (q.position != nil) ||
			len(parts) > 0 {
			return fmt.Errorf("request %s has %d bytes and not %d, %d links and not %d", id, n, q.bytes, refs[id],
				q.refs)
		}
		bytes += q.bytes
		if q.refs == 0 {
			unlinked += q.bytes
		}
	}
	for id := range refs {
		if s.requests[id] == nil {
			return fmt.Errorf("request %s is linked to and gone", id)
		}
	}
	for name, n := range s.nodes {
		if n.bytes != nodes[name] {
			return fmt.Errorf("node %s has %d bytes and not %d", name, nodes[name], n.bytes)
		}
	}
	if st := s.Stats(); bytes != st.Bytes || bytes > s.cfg.MaxBytes || unlinked != s.unlinkedBytes ||
		unlinked > s.cfg.MaxBytes/unlinkedShare || spans != st.Spans || ofNodes != s.nodeBytes ||
		len(nodes) != len(s.nodes) {
		return fmt.Errorf("%+v, counted %d bytes, %d spans; unlinked %d and not %d; of nodes %d and not %d", st, bytes,
			spans, unlinked, s.unlinkedBytes, ofNodes, s.nodeBytes)
	}
	return nil
}

// TestFlood: a node that sends without end, of objects that it makes up and of another's, drives out nothing of others.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxBytes: 256 << 10, MaxSpans: 20})
	for i := range 5 {
		add(s, pod(0, i))
		add(s, by("n1", pod(0, 10+i)))
		add(s, by("n1", pod(1, i))) // the control plane has not sent anything about this pod yet
	}
	for i := range 20_000 {
		add(s, by("n2", pod(100+i, i%40)))
		if why := add(s, by("n2", pod(0, 1000+i))); why != of.Kept {
			t.Fatal(why)
		}
	}
	st, half := s.Stats(), s.cfg.MaxBytes/nodesShare
	if st.Overfull == 0 || st.Bytes < s.cfg.MaxBytes-1<<10 {
		t.Errorf("no flood: %+v", st)
	}
	for n, want := range map[int][]int64{0: {0, 1, 2, 3, 4, 10, 11, 12, 13, 14}, 1: {0, 1, 2, 3, 4}} {
		u, _ := uid(n)
		got, ok := s.Get(u)
		if !ok || !slices.Equal(starts(got)[:len(want)], want) {
			t.Errorf("pod %d: %v", n, starts(got))
		}
	}
	// The control plane gets its part back when it needs it, and a third node its own.
	for i := range 2000 {
		add(s, pod(50_000+i, i%40))
		add(s, by("n3", pod(80_000+i, i%40)))
		add(s, by("n2", pod(100+i, i%40)))
	}
	if a, b := s.nodes["n2"].bytes, s.nodes["n3"].bytes; s.nodeBytes > half || a < half*3/8 || b < half*3/8 {
		t.Errorf("of %d, n2 has %d and n3 %d", half, a, b)
	}
	if why := add(s, by("n1", request(1, 1, 0))); why != of.Foreign {
		t.Errorf("a request by a node: %q", why)
	}
	if add(s, by("n1", pod(90_000, 1, to(1, 0)))); len(s.requests) > 0 {
		t.Error("a node holds a request")
	}
}

// TestAccounting: the bytes that a full store says it has are those that it takes from the heap.
func TestAccounting(t *testing.T) {
	for name, attributes := range map[string]int{"small spans": 0, "usual spans": 8} {
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		s := New(Config{MaxBytes: 4 << 20, MaxSpans: 1000})
		for n := range 1 << 14 {
			r := pod(n%(1<<11), n>>11)
			if n%2 == 0 {
				r.Links = []of.Link{to(n, 0)}
			}
			for i := range attributes {
				r.Attributes = append(r.Attributes, of.Attribute{Key: fmt.Sprintf("k8s.some.attribute.%d", i),
					Value: "registry.local/image/web:1.0"})
			}
			add(s, by([]string{"", "", "n1", "n2"}[n/2%4], r))
		}
		took, said := heap()-before, s.Stats().Bytes
		if took > said*11/10 || took < said*6/10 {
			t.Errorf("%s: the store says %d bytes and takes %d", name, said, took)
		}
		runtime.KeepAlive(s)
	}
}

// TestLinked: the spans of a request show in the traces of those objects that link to it, and there only those around
// the span that made the object.
func TestLinked(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxBytes: 1 << 20, MaxSpans: 100})
	add := func(r *of.Record) int {
		t.Helper()
		var save [][]byte
		if why := s.Add(r, saved(&save)); why != of.Kept {
			t.Fatal(why)
		}
		return len(save)
	}
	// One kubectl (1) makes two requests, each with a step.
	if n := add(request(1, 1, 0)) + add(request(1, 2, 1)) + add(request(1, 3, 2)); n != 0 {
		t.Errorf("%d records of a request without a link are saved", n)
	}
	if n := add(pod(1, 20, to(1, 2))); n != 4 {
		t.Errorf("%d records are saved with the first link, not 4", n)
	}
	add(pod(2, 21, to(1, 4)))
	if n := add(request(1, 4, 1)) + add(request(1, 5, 4)); n != 2 {
		t.Errorf("%d records of a linked request are saved", n)
	}
	add(pod(3, 22))
	add(pod(4, 23, to(1, 0)))
	for n, want := range map[int][]int64{1: {1, 2, 3, 20}, 2: {1, 4, 5, 21}, 3: {22}, 4: {1, 2, 3, 4, 5, 23}} {
		u, _ := uid(n)
		got, ok := s.Get(u)
		if !ok || !slices.Equal(starts(got), want) || got.SpanCount != len(want) {
			t.Errorf("pod %d: %v, not %v", n, got, want)
		}
		if list := s.List(of.Query{UID: u}); len(list.Traces) != 1 || list.Traces[0].SpanCount != len(want) {
			t.Errorf("pod %d in a list: %+v", n, list)
		}
	}
}

// TestForeignSpans: who sends a request under an object's trace-id adds nothing to the object's trace, and a link to an
// object's trace-id shows nothing of that object.
func TestForeignSpans(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxBytes: 1 << 20, MaxSpans: 100})
	add(s, pod(1, 1))
	foreign := request(9, 2, 0)
	u1, id1 := uid(1)
	foreign.Trace = id1
	add(s, foreign)
	add(s, pod(2, 3, of.Link{Trace: id1, Relation: traces.RelationRequest}))
	if got, _ := s.Get(u1); !slices.Equal(starts(got), []int64{1}) {
		t.Errorf("pod 1 has the spans %v", starts(got))
	}
	u2, _ := uid(2)
	if got, _ := s.Get(u2); !slices.Equal(starts(got), []int64{2, 3}) {
		t.Errorf("pod 2 has the spans %v", starts(got))
	}
	other := pod(1, 4)
	other.Object.Namespace = "b" + other.Object.Namespace
	if why := add(s, other); why != of.Contradiction {
		t.Errorf("a span that moves the object to another namespace: %q", why)
	}
	circle := request(7, 1, 2)
	add(s, circle)
	add(s, request(7, 2, 1))
	add(s, pod(5, 9, to(7, 1)))
	u5, _ := uid(5)
	if got, _ := s.Get(u5); !slices.Equal(starts(got), []int64{1, 2, 9}) {
		t.Errorf("pod 5 has the spans %v", starts(got))
	}
}

// TestBoundsOfATrace: a trace with too many spans keeps its first and its last, and one with a huge span does not take
// it.
func TestBoundsOfATrace(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxBytes: 1 << 20, MaxSpans: 10})
	for i := range 100 {
		add(s, pod(1, i))
	}
	u, _ := uid(1)
	got, _ := s.Get(u)
	if !slices.Equal(starts(got), []int64{0, 1, 2, 3, 4, 95, 96, 97, 98, 99}) || got.DroppedSpans != 90 {
		t.Errorf("%v, %d dropped", starts(got), got.DroppedSpans)
	}
	if why := add(s, pod(1, 99)); why != of.Duplicate {
		t.Errorf("the same span again: %q", why)
	}
	huge := pod(2, 1)
	huge.Error = strings.Repeat("x", 1<<17)
	if why := add(s, huge); why != of.TooLarge {
		t.Errorf("a huge span: %q", why)
	}
	if st := s.Stats(); st.Objects != 1 || st.Spans != 10 {
		t.Errorf("%+v", st)
	}
}

// TestList: selection, order and pages.
func TestList(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxBytes: 1 << 20, MaxSpans: 10})
	for n := range 9 {
		r := pod(n, n+1)
		r.End = r.Start + int64(n*n%7)*1000
		add(s, r)
	}
	node := pod(20, 3)
	node.Object = &traces.Object{Resource: "nodes", Kind: "Node", Name: "n1", UID: node.Object.UID}
	add(s, node)
	u4, _ := uid(4)
	for name, c := range map[string]struct {
		query     of.Query
		want      string
		remaining int
	}{
		"all in namespaces": {of.Query{}, "pod-0 pod-2 pod-4 pod-6 pod-8 pod-1 pod-3 pod-5 pod-7", 0},
		"cluster":           {of.Query{Cluster: true}, "n1", 0},
		"namespace":         {of.Query{Namespace: "b"}, "pod-1 pod-3 pod-5 pod-7", 0},
		"first page":        {of.Query{Namespace: "a", Limit: 2}, "pod-0 pod-2", 3},
		"next page": {of.Query{Limit: 3, After: of.Position{Namespace: "a", Name: "pod-4", UID: string(u4)}},
			"pod-6 pod-8 pod-1", 3},
		"kind":                 {of.Query{Kind: "Node"}, "", 0},
		"resource":             {of.Query{Resource: "pods", Name: "pod-3"}, "pod-3", 0},
		"uid":                  {of.Query{UID: u4}, "pod-4", 0},
		"uid elsewhere":        {of.Query{UID: u4, Namespace: "b"}, "", 0},
		"no uid":               {of.Query{UID: "x"}, "", 0},
		"since":                {of.Query{Since: 10_000}, "pod-8 pod-5", 0},
		"slowest":              {of.Query{Slowest: 3}, "pod-2 pod-5 pod-4", 6},
		"slowest with a limit": {of.Query{Slowest: 3, Limit: 1, Namespace: "b"}, "pod-5", 3},
		"hidden":               {of.Query{Hidden: map[schema.GroupResource]bool{{Resource: "pods"}: true}}, "", 0},
		"hidden elsewhere": {of.Query{Cluster: true, Hidden: map[schema.GroupResource]bool{{Resource: "pods"}: true}},
			"n1", 0},
	} {
		page := s.List(c.query)
		var got []string
		for _, x := range page.Traces {
			got = append(got, x.Object.Name)
		}
		if strings.Join(got, " ") != c.want || page.Remaining != c.remaining {
			t.Errorf("%s: %v, %d remaining; not %s, %d", name, got, page.Remaining, c.want, c.remaining)
		}
	}
	if got := s.Resources(of.Query{}); !slices.Equal(got, []schema.GroupResource{{Resource: "pods"}}) {
		t.Errorf("objects in namespaces are %v", got)
	}
	got, ok := s.Get(u4)
	if !ok || got.Name != string(u4) || got.Namespace != "a" ||
		got.CreationTimestamp.UTC() != time.Unix(0, 5000).UTC() ||
		got.Spans[0].TraceID != hex.EncodeToString(got4(u4)) {
		t.Errorf("%+v", got)
	}
	if _, ok := s.Get("no-uuid"); ok {
		t.Error("there is a trace of no UUID")
	}
}

func got4(u types.UID) []byte {
	id, _ := of.TraceOf(u)
	return id[:]
}
