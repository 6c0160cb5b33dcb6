package cri

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A runtime that was not there at first is found long before gRPC's own first pause, 0.8 to 1.2 s, is over.
func TestARuntimeThatComesIsSoonFound(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	conn, err := dial(socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.TransientFailure; state = conn.GetState() {
		if !conn.WaitForStateChange(t.Context(), state) {
			t.Fatal("never tried")
		}
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, fakeRuntime{})
	go func() { _ = s.Serve(l) }() // until Stop
	defer s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 750*time.Millisecond)
	defer cancel()
	if _, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{},
		grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
}
