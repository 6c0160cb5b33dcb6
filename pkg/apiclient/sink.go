package apiclient

// SinkFuncs is a Sink made of functions. All of them must be set, except DeleteFunc: nil ignores deletions.
type SinkFuncs[T any] struct {
	ReplaceFunc func(all []T)
	SetFunc     func(T)
	DeleteFunc  func(T)
}

var _ Sink[any] = SinkFuncs[any]{}

// Replace calls ReplaceFunc.
func (s SinkFuncs[T]) Replace(all []T) { s.ReplaceFunc(all) }

// Set calls SetFunc.
func (s SinkFuncs[T]) Set(o T) { s.SetFunc(o) }

// Delete calls DeleteFunc, if there is one.
func (s SinkFuncs[T]) Delete(o T) {
	if s.DeleteFunc != nil {
		s.DeleteFunc(o)
	}
}
