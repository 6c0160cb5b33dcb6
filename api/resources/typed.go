package resources

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Make returns an empty object of type T: the New of a Row, as in resources.Make[corev1.Pod].
func Make[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}

// Typed is a Strategy whose functions know their type; Strategy adapts it. Fields mean what they mean in Strategy, and
// old is nil in Warnings on create.
type Typed[T runtime.Object] struct {
	Default        func(obj T)
	EarlyWarnings  func(obj T) []string
	PrepareCreate  func(obj T)
	PrepareUpdate  func(obj, old T)
	Canonicalize   func(obj T)
	Validate       func(obj T) field.ErrorList
	ValidateUpdate func(obj, old T) field.ErrorList
	Warnings       func(obj, old T) []string
	ValidateName   func(name string, prefix bool) []string
	SpecChanged    func(obj, old T) bool
	Graceful       func(obj T, opts *metav1.DeleteOptions) *int64
	PrepareDelete  func(obj T)
	Held           func(obj T) bool
	CreateOnUpdate bool
	NoPropagation  bool
	DefaultOrphan  bool
	OrphanWarning  string
	ReturnDeleted  bool
	Resets         []string
	NeedsVersion   bool
}

// Strategy returns t without types. Its functions panic on an object of another type, which is a bug of the caller.
func (t Typed[T]) Strategy() Strategy {
	return Strategy{
		Default:        one(t.Default),
		EarlyWarnings:  oneResult(t.EarlyWarnings),
		PrepareCreate:  one(t.PrepareCreate),
		PrepareUpdate:  two(t.PrepareUpdate),
		Canonicalize:   one(t.Canonicalize),
		Validate:       oneResult(t.Validate),
		ValidateUpdate: change(t.ValidateUpdate),
		Warnings:       warnings(t.Warnings),
		ValidateName:   t.ValidateName,
		SpecChanged:    twoResult(t.SpecChanged),
		Graceful:       graceful(t.Graceful),
		PrepareDelete:  one(t.PrepareDelete),
		Held:           oneResult(t.Held),
		CreateOnUpdate: t.CreateOnUpdate,
		NoPropagation:  t.NoPropagation,
		DefaultOrphan:  t.DefaultOrphan,
		OrphanWarning:  t.OrphanWarning,
		ReturnDeleted:  t.ReturnDeleted,
		Resets:         t.Resets,
		NeedsVersion:   t.NeedsVersion,
	}
}

// Readable adapts a Row's Readable.
func Readable[T runtime.Object](f func(T) error) func(runtime.Object) error { return oneResult(f) }

// Decoded adapts a Row's Decoded.
func Decoded[T runtime.Object](f func(T)) func(runtime.Object) { return one(f) }

// Fields adapts a Row's Fields.
func Fields[T runtime.Object](f func(T) fields.Set) func(runtime.Object) fields.Set {
	return oneResult(f)
}

// Cells adapts a Row's Cells.
func Cells[T runtime.Object](f func(obj T, now time.Time) []any) func(runtime.Object, time.Time) []any {
	return func(obj runtime.Object, now time.Time) []any { return f(obj.(T), now) }
}

// Conditions makes a row's Conditions of a function on its Go type.
func Conditions[T runtime.Object](f func(obj T) []metav1.TableRowCondition) func(
	runtime.Object) []metav1.TableRowCondition {
	return func(obj runtime.Object) []metav1.TableRowCondition { return f(obj.(T)) }
}

func one[T runtime.Object](f func(T)) func(runtime.Object) {
	if f == nil {
		return nil
	}
	return func(obj runtime.Object) { f(obj.(T)) }
}

func two[T runtime.Object](f func(T, T)) func(obj, old runtime.Object) {
	if f == nil {
		return nil
	}
	return func(obj, old runtime.Object) { f(obj.(T), old.(T)) }
}

func oneResult[T runtime.Object, R any](f func(T) R) func(runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(obj runtime.Object) R { return f(obj.(T)) }
}

func twoResult[T runtime.Object, R any](f func(T, T) R) func(obj, old runtime.Object) R {
	if f == nil {
		return nil
	}
	return func(obj, old runtime.Object) R { return f(obj.(T), old.(T)) }
}

// change adapts the rules of updates of kinds that warn of no faults that an update keeps.
func change[T runtime.Object](f func(T, T) field.ErrorList) func(obj, old runtime.Object) (field.ErrorList, []string) {
	if f == nil {
		return nil
	}
	return func(obj, old runtime.Object) (field.ErrorList, []string) { return f(obj.(T), old.(T)), nil }
}

// warnings keeps a missing old object a nil of the right type.
func warnings[T runtime.Object](f func(obj, old T) []string) func(obj, old runtime.Object) []string {
	if f == nil {
		return nil
	}
	return func(obj, old runtime.Object) []string {
		typed, _ := old.(T)
		return f(obj.(T), typed)
	}
}

func graceful[T runtime.Object](f func(T, *metav1.DeleteOptions) *int64) func(runtime.Object,
	*metav1.DeleteOptions) *int64 {
	if f == nil {
		return nil
	}
	return func(obj runtime.Object, opts *metav1.DeleteOptions) *int64 { return f(obj.(T), opts) }
}
