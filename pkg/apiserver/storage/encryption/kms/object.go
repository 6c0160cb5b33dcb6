package kms

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds on what a plug-in may return, and on what is read from the storage.
const (
	maxSource      = 1 << 10  // bytes of an encrypted data encryption key or seed
	maxKeyID       = 1 << 10  // bytes of a key ID
	maxAnnotations = 32 << 10 // bytes of all annotations
)

// sourceType says what an object's encrypted source is.
type sourceType int

const (
	// sourceKey is a key of 32 bytes: the data is a nonce of 12 bytes and what AES-GCM made with the key.
	sourceKey sourceType = 0
	// sourceSeed is a seed of 32 bytes: the data begins with 32 bytes of info, from which and the seed HKDF-Expand with
	// SHA-256 derives the key for the rest.
	sourceSeed sourceType = 1
)

// object is what the storage keeps of a value, behind the provider's prefix: Kubernetes' message EncryptedObject.
type object struct {
	data        []byte // field 1
	keyID       string // field 2
	source      []byte // field 3
	annotations map[string][]byte
	sourceType  sourceType // field 5
}

// fieldData is the number of the first field.
const fieldData = 1

// appendTail appends the fields behind the data. Annotations are in the order of their names.
func (o *object) appendTail(b []byte) []byte {
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), o.keyID)
	b = protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), o.source)
	for _, name := range slices.Sorted(maps.Keys(o.annotations)) {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
		entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), o.annotations[name])
		b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), entry)
	}
	if o.sourceType != sourceKey {
		b = protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), uint64(o.sourceType))
	}
	return b
}

var errObject = errors.New("the stored data is no EncryptedObject")

// parse reads a message. Its parts lie in b.
func parse(b []byte) (*object, error) {
	o := &object{}
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, errObject
		}
		b = b[n:]
		switch {
		case number >= 1 && number <= 4 && wire == protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 || o.set(number, v) != nil {
				return nil, errObject
			}
			b = b[n:]
		case number == 5 && wire == protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 || v > uint64(sourceSeed) {
				return nil, errObject
			}
			o.sourceType, b = sourceType(v), b[n:]
		default:
			return nil, errObject
		}
	}
	return o, o.check()
}

// sameSource reports whether both have been encrypted by one source.
func (o *object) sameSource(other *object) bool {
	return o.keyID == other.keyID && o.sourceType == other.sourceType && bytes.Equal(o.source, other.source) &&
		maps.EqualFunc(o.annotations, other.annotations, bytes.Equal)
}

// set sets a field of bytes.
func (o *object) set(number protowire.Number, v []byte) error {
	switch number {
	case fieldData:
		o.data = v
	case 2:
		o.keyID = string(v)
	case 3:
		o.source = v
	case 4:
		name, value, err := parseEntry(v)
		if err != nil {
			return err
		}
		if o.annotations == nil {
			o.annotations = map[string][]byte{}
		}
		o.annotations[name] = value
	}
	return nil
}

// parseEntry reads an entry of the annotations.
func parseEntry(b []byte) (name string, value []byte, err error) {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 || wire != protowire.BytesType {
			return "", nil, errObject
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return "", nil, errObject
		}
		b = b[n+m:]
		switch number {
		case 1:
			name = string(v)
		case 2:
			value = v
		default:
			return "", nil, errObject
		}
	}
	return name, value, nil
}

// check returns what is wrong with the object, in Kubernetes' words.
func (o *object) check() error {
	if len(o.data) == 0 {
		return errors.New("encrypted data is empty")
	}
	if err := checkKeyID(o.keyID); err != nil {
		return err
	}
	if err := checkSource(o.source); err != nil {
		return err
	}
	return checkAnnotations(o.annotations)
}

var errNoKeyID = errors.New("keyID is empty")

func checkKeyID(id string) error {
	switch {
	case id == "":
		return errNoKeyID
	case len(id) > maxKeyID:
		return fmt.Errorf("keyID is %d bytes, which exceeds the max size of %d", len(id), maxKeyID)
	}
	return nil
}

func checkSource(source []byte) error {
	switch {
	case len(source) == 0:
		return errors.New("encrypted DEK source is empty")
	case len(source) > maxSource:
		return fmt.Errorf("encrypted DEK source is %d bytes, which exceeds the max size of %d", len(source), maxSource)
	}
	return nil
}

func checkAnnotations(annotations map[string][]byte) error {
	size := 0
	for name, value := range annotations {
		size += len(name) + len(value)
	}
	if size > maxAnnotations {
		return fmt.Errorf("total size of annotations is %d, which exceeds the max size of %d", size, maxAnnotations)
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		var errs field.ErrorList
		for _, text := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(field.NewPath("annotations"), name, text))
		}
		if len(errs) == 0 && strings.Count(name, ".") < 2 {
			errs = append(errs, field.Invalid(field.NewPath("annotations"), name,
				"should be a domain with at least three segments separated by dots"))
		}
		if err := errs.ToAggregate(); err != nil {
			return err
		}
	}
	return nil
}
