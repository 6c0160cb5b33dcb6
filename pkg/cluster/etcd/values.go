package etcd

import (
	"context"
	"errors"
)

// pageSize is the number of values in one answer: Secrets may have a megabyte each.
const pageSize = 16

// Each calls do with each key below prefix and its value, in the order of the keys. What is written meanwhile behind
// the present key is seen. The value is good during the call alone.
func Each(ctx context.Context, etcds []API, prefix string, do func(key string, value []byte) error) error {
	if len(etcds) == 0 || prefix == "" {
		return errors.New("there is no etcd to read, or nothing to read from it")
	}
	// The range ends before the first key that does not begin with prefix.
	end := []byte(prefix)
	end[len(end)-1]++
	for next := []byte(prefix); next != nil; {
		var page struct {
			KVs  []struct{ Key, Value []byte } `json:"kvs"`
			More bool                          `json:"more"`
		}
		ask := map[string]any{"key": next, "range_end": end, "limit": pageSize}
		if err := etcds[0].callFor(ctx, "/v3/kv/range", ask, &page, maxEtcdValues); err != nil {
			return err
		}
		next = nil
		for _, kv := range page.KVs {
			if err := do(string(kv.Key), kv.Value); err != nil {
				return err
			}
			if page.More {
				next = append(kv.Key, 0)
			}
		}
	}
	return nil
}

// Count returns the number of members.
func Count(ctx context.Context, etcds []API) (n int, err error) {
	err = ask(ctx, etcds, func(ctx context.Context, e API) error {
		members, err := e.list(ctx, true)
		n = len(members)
		return err
	})
	return n, err
}
