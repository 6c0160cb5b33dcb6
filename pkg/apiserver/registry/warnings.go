package registry

import "context"

type warnerKey struct{}

// WithWarner returns a copy of ctx in which writes report their warnings to warn.
func WithWarner(ctx context.Context, warn func(string)) context.Context {
	return context.WithValue(ctx, warnerKey{}, warn)
}

// WarnerFrom returns where ctx's warnings go; never nil.
func WarnerFrom(ctx context.Context) func(string) {
	if warn, ok := ctx.Value(warnerKey{}).(func(string)); ok {
		return warn
	}
	return func(string) {}
}
