package decide

// recent is a cache of the most recently used values.
type recent[K comparable, V any] struct {
	values map[K]*used[V]
	clock  int64
}

type used[V any] struct {
	value V
	at    int64
}

func newRecent[K comparable, V any]() *recent[K, V] { return &recent[K, V]{values: map[K]*used[V]{}} }

// get returns the value of key, made on first use. At most limit values are kept.
func (r *recent[K, V]) get(key K, limit int, make func() V) V {
	r.clock++
	u := r.values[key]
	if u == nil {
		if len(r.values) >= limit {
			r.evict()
		}
		u = &used[V]{value: make()}
		r.values[key] = u
	}
	u.at = r.clock
	return u.value
}

// evict drops the older half, so that the search for it is rare.
func (r *recent[K, V]) evict() {
	oldest := r.clock
	for _, u := range r.values {
		oldest = min(oldest, u.at)
	}
	middle := oldest + (r.clock-oldest)/2
	for k, u := range r.values {
		if u.at <= middle {
			delete(r.values, k)
		}
	}
}

// Limits of what is kept: at most budget node verdicts in all, but some classes always.
const (
	budget   = 400_000
	fewest   = 16
	manyEver = 128
)

// keep returns how many classes may be kept for a number of nodes: the memory of a class grows with the nodes.
func keep(nodes int) int { return min(max(budget/max(nodes, 1), fewest), manyEver) }
