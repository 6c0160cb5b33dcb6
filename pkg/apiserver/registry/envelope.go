package registry

import (
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Message is what the generated protobuf code of every API type offers.
type Message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
	Unmarshal([]byte) error
}

// envelopeMagic starts every protobuf document of Kubernetes, stored or sent; a runtime.Unknown message follows.
const envelopeMagic = "k8s\x00"

// The tags of runtime.Unknown's fields: typeMeta, raw, contentEncoding and contentType; and of a metadata field (1) and
// of ObjectMeta's resourceVersion (6). All are length-delimited.
const (
	tagTypeMeta        = 1<<3 | 2
	tagRaw             = 2<<3 | 2
	tagContentEncoding = 3<<3 | 2
	tagContentType     = 4<<3 | 2
	tagMetadata        = 1<<3 | 2
	tagResourceVersion = 6<<3 | 2
)

var errEnvelope = errors.New("not a protobuf document of Kubernetes")

// errMagic is for a document of another format.
var errMagic = fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v",
	[]byte(envelopeMagic))

// EnvelopeHead returns what precedes the raw message's length in a document of kind gvk.
func EnvelopeHead(gvk schema.GroupVersionKind) []byte {
	version, kind := gvk.GroupVersion().String(), gvk.Kind
	inner := appendField(nil, 1<<3|2, version)
	inner = appendField(inner, 2<<3|2, kind)
	b := append([]byte(envelopeMagic), tagTypeMeta)
	b = binary.AppendUvarint(b, uint64(len(inner)))
	b = append(b, inner...)
	return append(b, tagRaw)
}

// EnvelopeTail ends a document: empty contentEncoding and contentType, as upstream writes them.
const EnvelopeTail = string(rune(tagContentEncoding)) + "\x00" + string(rune(tagContentType)) + "\x00"

func appendField(b []byte, tag byte, s string) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Envelope is a parsed protobuf document; its slices are parts of the document.
type Envelope struct {
	APIVersion, Kind []byte
	Raw              []byte
}

// ParseEnvelope reads a document without decoding its message.
func ParseEnvelope(doc []byte) (Envelope, error) {
	var e Envelope
	if len(doc) < len(envelopeMagic) || string(doc[:len(envelopeMagic)]) != envelopeMagic {
		return e, errMagic
	}
	err := eachField(doc[len(envelopeMagic):], func(field int, value []byte) error {
		switch field {
		case 1:
			return eachField(value, func(field int, value []byte) error {
				switch field {
				case 1:
					e.APIVersion = value
				case 2:
					e.Kind = value
				}
				return nil
			})
		case 2:
			e.Raw = value
		}
		return nil
	})
	return e, err
}

// metadataOf returns the encoded ObjectMeta (field 1) of a message. If there are several, it is the last one. Stored
// messages have one.
func metadataOf(raw []byte) ([]byte, error) {
	var meta []byte
	err := eachField(raw, func(field int, value []byte) error {
		if field == 1 {
			meta = value
		}
		return nil
	})
	return meta, err
}

// eachField calls f for every length-delimited field of a message and skips the others. It checks each length against
// what is left, so broken bytes end in an error. Groups (wire types 3 and 4) are refused: no Kubernetes type has any.
func eachField(b []byte, f func(field int, value []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return fmt.Errorf("%w: bad field tag", errEnvelope)
		}
		b = b[n:]
		switch tag & 7 {
		case 0:
			_, n := binary.Uvarint(b)
			if n <= 0 {
				return fmt.Errorf("%w: bad number", errEnvelope)
			}
			b = b[n:]
		case 1, 5:
			size := 8
			if tag&7 == 5 {
				size = 4
			}
			if len(b) < size {
				return fmt.Errorf("%w: cut short", errEnvelope)
			}
			b = b[size:]
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return fmt.Errorf("%w: cut short", errEnvelope)
			}
			if err := f(int(tag>>3), b[n:n+int(size)]); err != nil {
				return err
			}
			b = b[n+int(size):]
		default:
			return fmt.Errorf("%w: unknown wire type %d", errEnvelope, tag&7)
		}
	}
	return nil
}

// UvarintLen is the length of n as a varint.
func UvarintLen(n uint64) int {
	l := 1
	for n >= 0x80 {
		n >>= 7
		l++
	}
	return l
}
