package cli

import "context"

type serialKey struct{}

// WithSerial returns a ctx in which Serial calls do.
func WithSerial(ctx context.Context, do func()) context.Context {
	return context.WithValue(ctx, serialKey{}, do)
}

// Serial is for commands that send many small requests and wait for the answer of each: it tells the owner of the
// process, if that wants to know, that a second processor would only be woken in vain.
func Serial(ctx context.Context) {
	if do, ok := ctx.Value(serialKey{}).(func()); ok {
		do()
	}
}
