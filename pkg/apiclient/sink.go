package apiclient

// Told is a Sink made of functions.
type Told[T any] struct {
	replace   func(all []T)
	set, drop func(T)
}

var _ Sink[any] = Told[any]{}

// NewSink returns a sink that hands on what it takes.
func NewSink[T any](replace func(all []T), set, drop func(T)) Told[T] {
	return Told[T]{replace, set, drop}
}

// Replace takes everything there is.
func (s Told[T]) Replace(all []T) { s.replace(all) }

// Set takes an object that is new or changed.
func (s Told[T]) Set(o T) { s.set(o) }

// Delete takes an object that is gone.
func (s Told[T]) Delete(o T) { s.drop(o) }
