package policies

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"bonsai/pkg/trace"
)

// startSpan begins the span of a policy, if the request of ctx is recorded.
func startSpan(ctx context.Context, name, policy string) (context.Context, *trace.Span) {
	ctx, span := trace.Start(ctx, name)
	if span != nil {
		span.Set(attribute.String("bonsai.policy.name", policy))
	}
	return ctx, span
}
