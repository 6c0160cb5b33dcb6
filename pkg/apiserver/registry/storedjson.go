package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
)

// StoredJSON opens the values of a kind that another server has stored as JSON: Kubernetes keeps
// CustomResourceDefinitions and APIServices so. They become protobuf here, and in the storage with their next write,
// which Kubernetes reads as well.
type StoredJSON struct {
	codec Codec
	read  func(document []byte) (runtime.Object, error)
	// inner seals and opens the values; nil: they are stored as they are.
	inner storage.Transformer
}

var _ storage.Transformer = (*StoredJSON)(nil)

// NewStoredJSON returns the Transformer of the keys of row, around one that may be nil. read makes an object of a
// document, without a part of it in its error; nil: documents are of the version that is stored here.
func NewStoredJSON(row *resources.Row, read func(document []byte) (runtime.Object, error),
	inner storage.Transformer) *StoredJSON {
	s := &StoredJSON{NewCodec(row), read, inner}
	if read == nil {
		s.read = s.decode
	}
	return s
}

func (s *StoredJSON) decode(document []byte) (runtime.Object, error) {
	obj := s.codec.New()
	if json.Unmarshal(document, obj) != nil || obj.GetObjectKind().GroupVersionKind() != s.codec.GVK() {
		return nil, fmt.Errorf("it is no JSON of a %s", s.codec.GVK())
	}
	return obj, nil
}

// Seal implements storage.Transformer.
func (s *StoredJSON) Seal(ctx context.Context, path, value []byte) ([]byte, error) {
	if s.inner == nil {
		return value, nil
	}
	return s.inner.Seal(ctx, path, value)
}

// AtHand implements storage.Transformer.
func (s *StoredJSON) AtHand(stored []byte) bool { return s.inner == nil || s.inner.AtHand(stored) }

// Open implements storage.Transformer. JSON is stale.
func (s *StoredJSON) Open(ctx context.Context, path, stored []byte) (value []byte, stale bool, err error) {
	value = stored
	if s.inner != nil {
		if value, stale, err = s.inner.Open(ctx, path, stored); err != nil {
			return nil, false, err
		}
	}
	if !bytes.HasPrefix(value, []byte("{")) {
		return value, stale, nil
	}
	obj, err := s.read(value)
	if err != nil {
		return nil, false, err
	}
	draft, err := s.codec.Draft(obj)
	if err != nil {
		return nil, false, err
	}
	return draft.Value, true, nil
}
