package kms

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
)

const (
	// maxAnswer bounds a plug-in's answer: the largest one that is allowed has annotations of 32 KiB.
	maxAnswer = 64 << 10
	// maxCalls is how many calls to one plug-in are under way at most.
	maxCalls = 32
)

// plugin calls a plug-in over its socket.
type plugin struct {
	conn    *grpc.ClientConn
	client  kmsapi.KeyManagementServiceClient
	timeout time.Duration
	calls   chan struct{}
	// observe receives every call.
	observe func(method string, took time.Duration, err error)
}

// dial returns the plug-in behind endpoint ("unix:///run/kms.sock"). It does not wait for it: calls do.
func dial(endpoint string, timeout time.Duration, observe func(string, time.Duration, error)) (*plugin, error) {
	socket, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket of this machine, as Kubernetes defines it
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 3 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: time.Second}}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("connect to the KMS plug-in at %s: %w", endpoint, err)
	}
	return &plugin{conn: conn, client: kmsapi.NewKeyManagementServiceClient(conn), timeout: timeout,
		calls: make(chan struct{}, maxCalls), observe: observe}, nil
}

// socketPath is the path of a unix endpoint. "/@name" is an abstract socket, as Kubernetes has it.
func socketPath(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("invalid endpoint %q for kms provider, error: %w", endpoint, err)
	}
	if strings.HasPrefix(u.Path, "/@") {
		return strings.TrimPrefix(u.Path, "/"), nil
	}
	return u.Path, nil
}

// call makes one call, within the timeout.
func (p *plugin) call(ctx context.Context, method string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	select {
	case p.calls <- struct{}{}:
		defer func() { <-p.calls }()
	case <-ctx.Done():
		return fmt.Errorf("%d calls to the KMS plug-in are under way: %w", maxCalls, ctx.Err())
	}
	begin := time.Now()
	err := do(ctx)
	p.observe("/v2.KeyManagementService/"+method, time.Since(begin), err)
	return err
}

func (p *plugin) status(ctx context.Context) (resp *kmsapi.StatusResponse, err error) {
	err = p.call(ctx, "Status", func(ctx context.Context) error {
		resp, err = p.client.Status(ctx, &kmsapi.StatusRequest{})
		return err
	})
	return resp, err
}

func (p *plugin) encrypt(ctx context.Context, uid string, plain []byte) (resp *kmsapi.EncryptResponse, err error) {
	err = p.call(ctx, "Encrypt", func(ctx context.Context) error {
		resp, err = p.client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plain})
		return err
	})
	return resp, err
}

func (p *plugin) decrypt(ctx context.Context, uid string, o *object) (plain []byte, err error) {
	err = p.call(ctx, "Decrypt", func(ctx context.Context) error {
		resp, err := p.client.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: uid, Ciphertext: o.source, KeyId: o.keyID,
			Annotations: o.annotations})
		plain = resp.GetPlaintext()
		return err
	})
	return plain, err
}
