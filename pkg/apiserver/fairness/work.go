package fairness

import (
	"net/url"
	"strconv"
	"sync"
	"time"

	"bonsai/pkg/apiserver/request"
)

// What a request is thought to cost (KEP-1040, "Determining the width"). A list takes a seat for every objectsPerSeat,
// at most maxWidth. A write takes one, and then one for every watchersPerSeat watchers while they receive the change.
const (
	objectsPerSeat  = 100
	watchersPerSeat = 10
	maxWidth        = 10
	toldIn          = 5 * time.Millisecond // a seat's watchers
)

// work is the price of a request: width seats while it runs, then final seats for extra.
type work struct {
	width, final int
	extra        time.Duration
	mutating     bool
}

// work estimates the price of a request. Only the request's own words and two counts enter: nothing here reads an
// object. A list with a limit and no selector is priced by its limit, any other one by all the objects of its resource.
// Exempt levels have no bound, so their width would mean nothing.
func (d *Dispatcher) work(l *level, info *request.Info, query string) work {
	w := work{width: 1}
	if !info.IsResource {
		return w
	}
	switch info.Verb {
	case "list":
		if l.exempt || info.Name != "" || d.cfg.Count == nil {
			return w
		}
		n := d.cfg.Count(info.APIGroup, info.Resource)
		if limit := limitOf(query); limit > 0 {
			n = min(n, limit)
		}
		w.width = max(1, min(maxWidth, (n+objectsPerSeat-1)/objectsPerSeat))
	case "create", "update", "patch", "delete", "deletecollection":
		w.mutating = true
		if l.exempt {
			return w
		}
		// The product final × extra is the same however many seats it is spread over: beyond maxWidth the seats are
		// held longer.
		if told := d.watchers.of(info) / watchersPerSeat; told > 0 {
			w.final = min(maxWidth, told)
			w.extra = toldIn * time.Duration(told) / time.Duration(w.final)
		}
	}
	return w
}

// limitOf is how many objects a list asks for at most; 0: all. What selects among them makes the server look at more.
// The query is read as what serves the list reads it: escapes, and the first of several values.
func limitOf(query string) int {
	if query == "" {
		return 0
	}
	values, _ := url.ParseQuery(query) // parts that cannot be read are left out there, too
	if values.Get("labelSelector") != "" || values.Get("fieldSelector") != "" {
		return 0
	}
	n, err := strconv.Atoi(values.Get("limit"))
	if err != nil {
		return 0
	}
	return n
}

// watched is what a watcher follows: the objects of a resource, in one namespace or all, of one name or all.
type watched struct{ group, resource, namespace, name string }

// watchers counts the watchers of each set of objects.
type watchers struct {
	mu   sync.RWMutex
	many map[watched]int
}

// Watching counts a watcher until the function that it returns is called. One that selects by fields receives few
// changes and does not count, unless it watches one object. turn.take calls it when a watch has its turn, and over when
// the handler returns. Forgetting over would make each later write of that resource cost more, until the server
// restarts.
func (d *Dispatcher) Watching(info *request.Info) (over func()) {
	if info.FieldSelector != "" && info.Name == "" {
		return func() {}
	}
	key := watched{info.APIGroup, info.Resource, info.Namespace, info.Name}
	d.watchers.add(key, 1)
	return func() { d.watchers.add(key, -1) }
}

func (w *watchers) add(key watched, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.many[key] += n; w.many[key] == 0 {
		delete(w.many, key)
	}
}

// of returns how many watchers receive a write. It adds the watchers of all namespaces, those of the object's
// namespace, and those of that one object. A deletecollection names no object and counts the first two.
func (w *watchers) of(info *request.Info) int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	key := watched{group: info.APIGroup, resource: info.Resource}
	n := w.many[key]
	if info.Namespace != "" {
		key.namespace = info.Namespace
		n += w.many[key]
	}
	if info.Name != "" {
		key.name = info.Name
		n += w.many[key]
	}
	return n
}
