package registry

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"

	"bonsai/pkg/apiserver/storage"
)

// StoredJSON opens the values of a kind that another server has stored as JSON. Kubernetes keeps
// CustomResourceDefinitions and APIServices so, everything with --storage-media-type=application/json, and other tools
// write it. The values become protobuf here, and in the storage with their next write, which Kubernetes reads as well.
type StoredJSON struct {
	codec *ProtobufCodec
	read  func(document []byte) (runtime.Object, error)
	// inner seals and opens the values; nil: they are stored as they are.
	inner storage.Transformer
}

var _ storage.Transformer = (*StoredJSON)(nil)

// NewStoredJSON returns the Transformer of the keys whose values codec makes. read makes an object of a document,
// without a part of it in its error; nil: documents are of the versions whose protobuf codec reads.
func NewStoredJSON(codec *ProtobufCodec, read func(document []byte) (runtime.Object, error)) *StoredJSON {
	s := &StoredJSON{codec: codec, read: read}
	if read == nil {
		s.read = s.decode
	}
	return s
}

// Around returns the Transformer around one that seals and opens the values, which may be nil.
func (s *StoredJSON) Around(inner storage.Transformer) storage.Transformer {
	if inner == nil {
		return s
	}
	return &StoredJSON{s.codec, s.read, inner}
}

func (s *StoredJSON) decode(document []byte) (runtime.Object, error) {
	obj := s.codec.New()
	if sigsjson.UnmarshalCaseSensitivePreserveInts(document, obj) == nil {
		switch obj.GetObjectKind().GroupVersionKind() {
		case s.codec.gvk, s.codec.storedAs.WithKind(s.codec.gvk.Kind):
			obj.GetObjectKind().SetGroupVersionKind(s.codec.gvk)
			return obj, nil
		}
	}
	return nil, fmt.Errorf("it is no JSON of a %s", s.codec.gvk)
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
	if !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")) {
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
