package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// started is the snapshot that Start takes.
const started = "started"

// registry is the prefix of all objects in etcd.
const registry = "/registry/"

// unkept tells which keys no snapshot has: those that live for a time that etcd counts, and are the server's own or of
// no importance. Events go at a reset, the server's own stay.
func unkept(key []byte) (own, event bool) {
	return bytes.HasPrefix(key, []byte(registry+"masterleases/")), bytes.HasPrefix(key, []byte(registry+"events/"))
}

// snapshot is what etcd held, and when.
type snapshot struct {
	Revision int64
	Values   map[string][]byte
}

func (e *Environment) snapshotPath(name string) string { return e.at(filepath.Join("snapshots", name)) }

// Snapshot keeps all objects but Events as they are now, under a name (a DNS label); a snapshot of that name is
// replaced, but not the one that Start takes: later resets would lead to another state.
func (e *Environment) Snapshot(ctx context.Context, name string) error {
	if name == started {
		return fmt.Errorf("a snapshot's name %q: it is that of the environment's start: choose another one", name)
	}
	return e.snapshot(ctx, name)
}

// checkName checks the name of a snapshot, which is a part of a path.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("a snapshot's name %q: %s", name, strings.Join(problems, ", "))
	}
	return nil
}

// snapshot is Snapshot with any name.
func (e *Environment) snapshot(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	etcd := e.store()
	defer etcd.close()
	now, err := etcd.all(ctx, registry, false, 0)
	if err != nil {
		return err
	}
	s := snapshot{Revision: now.Header.Revision, Values: map[string][]byte{}}
	for _, kv := range now.Kvs {
		if own, event := unkept(kv.Key); !own && !event {
			s.Values[string(kv.Key)] = kv.Value
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := e.snapshotPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// mostRounds bounds how often a reset looks again: controllers that go on writing would keep it busy for ever.
const mostRounds = 50

// Reset brings all objects back to what they were at the snapshot of that name, "" for the start of the environment:
// what was made since is gone without a word to finalizers, what was changed or deleted is as it was, with its UID.
// When it returns the API server knows.
func (e *Environment) Reset(ctx context.Context, name string) error {
	if name == "" {
		name = started
	}
	if err := checkName(name); err != nil {
		return err
	}
	data, err := os.ReadFile(e.snapshotPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no snapshot %q", name)
	}
	if err != nil {
		return err
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read the snapshot %q: %w", name, err)
	}
	config, err := e.Client()
	if err != nil {
		return err
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer api.CloseIdleConnections()
	etcd := e.store()
	defer etcd.close()
	var operations []operation
	for range mostRounds {
		if operations, err = s.difference(ctx, etcd); err != nil || len(operations) == 0 {
			return err
		}
		if err := etcd.apply(ctx, operations); err != nil {
			return err
		}
		// A read that asks for no revision waits until the server has seen all that was written before.
		if err := ask(ctx, api, config.Host+"/api/v1/namespaces?limit=1", ""); err != nil {
			return err
		}
	}
	return fmt.Errorf("somebody goes on writing: after %d rounds the objects are not as in the snapshot %q, %s among %d", mostRounds, name, operations[0].key(), len(operations))
}

// difference is what makes etcd's content that of the snapshot.
func (s snapshot) difference(ctx context.Context, etcd store) ([]operation, error) {
	keys, err := etcd.all(ctx, registry, true, 0)
	if err != nil {
		return nil, err
	}
	changed, err := etcd.all(ctx, registry, false, s.Revision+1)
	if err != nil {
		return nil, err
	}
	var operations []operation
	there := map[string]bool{}
	for _, kv := range keys.Kvs {
		there[string(kv.Key)] = true
		if own, _ := unkept(kv.Key); own {
			continue
		}
		if _, kept := s.Values[string(kv.Key)]; !kept {
			operations = append(operations, operation{Delete: &rangeRequest{Key: kv.Key}})
		}
	}
	for _, kv := range changed.Kvs {
		if value, kept := s.Values[string(kv.Key)]; kept && !bytes.Equal(value, kv.Value) {
			operations = append(operations, operation{Put: &pair{kv.Key, value}})
		}
	}
	for key, value := range s.Values {
		if !there[key] {
			operations = append(operations, operation{Put: &pair{[]byte(key), value}})
		}
	}
	return operations, nil
}
