package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bonsai/pkg/apiserver/storage"
)

// readTries is how often a read is tried when its connection breaks. Writes are not: they may have happened.
const readTries = 3

// do runs one request with the store's time limit, reports it, and gives its error storage's words.
func (s *Store) do(ctx context.Context, operation, key string, request func(context.Context) error) error {
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := request(limited)
	if s.cfg.Observe != nil {
		s.cfg.Observe(operation, observedKey(s, key), time.Since(begin), err)
	}
	if err == nil {
		return nil
	}
	return translate(ctx, "etcd: "+operation, key, err)
}

// observedKey is key for Config.Observe.
func observedKey(s *Store, key string) string {
	if s.cfg.Prefix != keyRoot && strings.HasPrefix(key, s.cfg.Prefix+"/") {
		return s.key([]byte(key))
	}
	return key
}

// read is do for a request that may be repeated. It repeats without a pause: each try waits for a connection
// (grpc.WaitForReady). All tries share do's time limit, and Observe sees them as one request.
func (s *Store) read(ctx context.Context, operation, key string, request func(context.Context) error) error {
	return s.do(ctx, operation, key, func(ctx context.Context) error {
		for try := 1; ; try++ {
			err := request(ctx)
			if try == readTries || status.Code(err) != codes.Unavailable {
				return err
			}
		}
	})
}

// translate maps an error of etcd's client to storage's, wrapped with what was tried. The end of the caller's ctx comes
// first: whatever etcd's client returns then is its consequence, and nobody must take it for a fault of etcd.
func translate(ctx context.Context, tried, key string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return storage.At(tried, key, ended)
	}
	// of the store's limit: ctx has not ended
	if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return storage.At(tried, key, storage.ErrTimeout)
	}
	err = rpctypes.Error(err) // a value that can be compared, if it is one of etcd's
	if errors.Is(err, rpctypes.ErrCompacted) {
		return storage.At(tried, key, storage.ErrExpired)
	}
	if tooLarge(err) {
		return storage.At(tried, key, storage.ErrTooLarge)
	}
	return storage.At(tried, key, err)
}

// tooLarge reports whether a request was refused for its size: by etcd (--max-request-bytes), or by etcd's client,
// which sends nothing above 2 MiB and has no error of its own for that.
func tooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}
