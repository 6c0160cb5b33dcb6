package write

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// Base is what a verb holds when it is complete: its flags, streams, client and namespace.
type Base struct {
	*Flags
	cli.IOStreams
	// Client is nil until CompleteWith; a verb that only shows what it made (--dry-run=client) needs none.
	Client *resource.Client
	// Namespace is where namespaced objects are; Explicit is set if the user named it.
	Namespace string
	Explicit  bool
}

// CompleteWith reads the flags and gets namespace and client from f.
func (b *Base) CompleteWith(f *cli.Factory) (err error) {
	if err = b.Flags.Complete(b.ErrOut); err != nil {
		return err
	}
	if b.Namespace, b.Explicit, err = f.Namespace(); err != nil {
		return err
	}
	b.Client, err = f.Resources()
	return err
}

// Show prints obj as the result of operation.
func (b *Base) Show(operation string, obj runtime.Object) error {
	p, err := b.Printer(operation)
	if err != nil {
		return err
	}
	return p.Print(obj, b.Out)
}

// Create posts obj, a typed object with its kind set, and shows the answer; with --dry-run=client it shows obj.
func (b *Base) Create(ctx context.Context, obj runtime.Object) error {
	made, err := b.Post(ctx, obj)
	if err != nil {
		return err
	}
	return b.Show("created", made)
}

// Post is Create without showing.
func (b *Base) Post(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if err := b.Annotate(obj); err != nil {
		return nil, err
	}
	if b.DryRun == DryRunClient {
		return obj, nil
	}
	m, err := b.Client.MappingFor(obj.GetObjectKind().GroupVersionKind())
	if meta.IsNoMatchError(err) {
		r, _ := meta.UnsafeGuessKindToResource(obj.GetObjectKind().GroupVersionKind())
		return nil, fmt.Errorf("the server could not find the requested resource (post %s)", r.GroupResource())
	}
	if err != nil {
		return nil, err
	}
	ns := ""
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		ns = b.Namespace
		if a, err := meta.Accessor(obj); err == nil && a.GetNamespace() != "" {
			ns = a.GetNamespace()
		}
	}
	u, err := b.Client.Create(ctx, m, ns, obj, b.CreateOptions())
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		return u, nil
	}
	typed := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := resource.FromUnstructured(u, typed); err != nil {
		return nil, fmt.Errorf("decode the server's answer: %w", err)
	}
	return typed, nil
}

// Annotate keeps obj's configuration in its annotation, if --save-config asks for it.
func (b *Base) Annotate(obj runtime.Object) error {
	if !b.SaveConfig {
		return nil
	}
	return SetLastApplied(obj)
}

// NoFiles is the error of a verb that needs -f.
func NoFiles() error { return errors.New("must specify one of -f and -k") }

// Said shows a message as it is, without "error: " before it, and ends the command.
func (b *Base) Said(err error) error {
	fmt.Fprintln(b.ErrOut, cli.Message(err))
	return cli.Silent()
}

// WithSource says which file's object err is about and what was tried: error when creating "f.yaml": ….
func WithSource(verb, source string, err error) error {
	if err == nil || source == "" {
		return err
	}
	return fmt.Errorf("error when %s %q: %w", verb, source, err)
}
