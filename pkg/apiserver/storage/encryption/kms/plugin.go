package kms

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"bonsai/pkg/apiserver/localgrpc"
)

const (
	// maxAnswer bounds a plug-in's answer: the largest one that is allowed has annotations of 32 KiB.
	maxAnswer = 64 << 10
	// maxCalls is how many calls to one plug-in are under way at most.
	maxCalls = 32
)

// plugin calls a plug-in over its socket.
type plugin struct {
	conn   *localgrpc.Conn
	client kmsapi.KeyManagementServiceClient
	// observe receives every call.
	observe func(method string, took time.Duration, err error)
}

// dial returns the plug-in behind endpoint ("unix:///run/kms.sock"). It does not wait for it: calls do.
func dial(endpoint string, timeout time.Duration, observe func(string, time.Duration, error)) (*plugin, error) {
	socket, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := localgrpc.Dial(localgrpc.Config{Name: "KMS plug-in", Socket: socket, Timeout: timeout,
		MaxAnswer: maxAnswer, MaxCalls: maxCalls})
	if err != nil {
		return nil, err
	}
	return &plugin{conn: conn, client: kmsapi.NewKeyManagementServiceClient(conn), observe: observe}, nil
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
	return p.conn.Call(ctx, func(ctx context.Context) error {
		begin := time.Now()
		err := do(ctx)
		p.observe("/v2.KeyManagementService/"+method, time.Since(begin), err)
		return err
	})
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
