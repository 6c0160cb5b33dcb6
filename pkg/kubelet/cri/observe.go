package cri

import (
	"context"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
)

// observed tells observe of each call.
func observed(observe func(operation string, took time.Duration, err error)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		begun := time.Now()
		err := invoke(ctx, method, req, reply, conn, opts...)
		observe(operation(method), time.Since(begun), err)
		return err
	}
}

// operation is the name that upstream's metrics give to a method of the CRI: /runtime.v1.RuntimeService/RunPodSandbox
// is run_podsandbox, ExecSync exec_sync.
func operation(method string) string {
	name := strings.ReplaceAll(method[strings.LastIndexByte(method, '/')+1:], "PodSandbox", "Podsandbox")
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
