package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// store is the environment's etcd, asked by its JSON gateway at its socket.
type store struct{ client *http.Client }

func (e *Environment) store() store {
	return store{&http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", e.at("client:0"))
		}}}}
}

func (s store) close() { s.client.CloseIdleConnections() }

// Bounds on one transaction, for etcd's flags.
const (
	mostOps   = 4096
	mostBytes = 16 << 20
)

// pair is a key of etcd with its value, if that was asked for.
type pair struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// The parts of etcd's messages that are used here, as its gateway spells them: int64 are strings.
type (
	rangeRequest struct {
		Key            []byte `json:"key"`
		RangeEnd       []byte `json:"range_end,omitempty"`
		KeysOnly       bool   `json:"keys_only,omitempty"`
		MinModRevision int64  `json:"min_mod_revision,omitempty,string"`
	}
	rangeResponse struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		Kvs []pair `json:"kvs"`
	}
	operation struct {
		Put    *pair         `json:"request_put,omitempty"`
		Delete *rangeRequest `json:"request_delete_range,omitempty"`
	}
	transaction struct {
		Success []operation `json:"success"`
	}
)

// key is what the operation changes.
func (o operation) key() []byte {
	if o.Put != nil {
		return o.Put.Key
	}
	return o.Delete.Key
}

// all asks for everything below prefix: the keys alone, or the pairs that changed at the revision since or later.
func (s store) all(ctx context.Context, prefix string, keysOnly bool, since int64) (rangeResponse, error) {
	end := []byte(prefix)
	end[len(end)-1]++
	var r rangeResponse
	err := s.post(ctx, "range",
		rangeRequest{Key: []byte(prefix), RangeEnd: end, KeysOnly: keysOnly, MinModRevision: since}, &r)
	return r, err
}

// apply does the operations in their order, in as few transactions as may be.
func (s store) apply(ctx context.Context, operations []operation) error {
	for len(operations) > 0 {
		n, size := 0, 0
		for n < len(operations) && n < mostOps {
			if put := operations[n].Put; put != nil {
				if size += len(put.Key) + len(put.Value); n > 0 && size > mostBytes/2 {
					break
				}
			}
			n++
		}
		if err := s.post(ctx, "txn", transaction{Success: operations[:n]}, &struct{}{}); err != nil {
			return err
		}
		operations = operations[n:]
	}
	return nil
}

func (s store) post(ctx context.Context, verb string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r, err := s.client.Do(q)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(r.Body, 1024))
		return fmt.Errorf("ask etcd: %s: %s", r.Status, why)
	}
	return json.NewDecoder(r.Body).Decode(out)
}
