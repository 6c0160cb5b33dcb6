package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// versionedRuntime answers the one question that the kubelet asks before it runs.
type versionedRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (versionedRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "bare", RuntimeVersion: "1"}, nil
}

// TestRunLeavesNothing: when the kubelet's own server cannot be made, run returns the error and leaves no goroutine:
// neither a part that it started, nor the connection to the runtime. It is not parallel, because goleak sees all
// goroutines of the process.
func TestRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	socket := filepath.Join(dir, "cri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	cri := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(cri, versionedRuntime{})
	go func() { _ = cri.Serve(l) }()
	defer cri.Stop()
	kubeconfig := write("kubeconfig", `{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
		"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
		"users": [{"name": "x", "user": {}}]}`)
	notCA := write("ca.crt", "no certificate")
	s, err := parse(t, fmt.Sprintf("containerRuntimeEndpoint: unix://%s\npodLogsDir: %s/logs\nhealthzPort: 0\n"+
		"resolvConf: %s\nauthentication: {x509: {clientCAFile: %s}}\n", socket, dir, write("resolv.conf", ""), notCA),
		"--kubeconfig="+kubeconfig, "--root-dir="+filepath.Join(dir, "root"), "--cert-dir="+dir,
		"--hostname-override=n1", "--node-ip=192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	s.containerLogsDir = filepath.Join(dir, "links")
	before := goleak.IgnoreCurrent()
	err = run(t.Context(), s, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "authentication.x509.clientCAFile: ") {
		t.Errorf("%v, want an error about authentication.x509.clientCAFile", err)
	}
	goleak.VerifyNone(t, before)
}
