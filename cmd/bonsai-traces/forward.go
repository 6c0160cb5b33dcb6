package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/traces/forward"
	"bonsai/pkg/traces/receiver"
	"bonsai/pkg/traces/serve"
)

// forwardSpans sends on what comes in by the socket, until ctx ends.
func forwardSpans(ctx context.Context, o *options, log *slog.Logger) error {
	debug.SetGCPercent(gcPercent)
	config, err := clientcmd.BuildConfigFromFlags("", o.forwardTo)
	if err != nil {
		return fmt.Errorf("--forward-kubeconfig: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("--forward-kubeconfig: %w", err)
	}
	defer client.CloseIdleConnections()
	to := &forward.Forwarder{Client: client, URL: config.Host + serve.SpansPath, Log: log}
	r := &receiver.Receiver{Socket: o.socket, Relay: to.Send, Log: log}
	socket, err := r.Listen(ctx)
	if err != nil {
		return err
	}
	log.Info("sending spans on", "to", to.URL)
	return r.Serve(ctx, socket)
}
