// Package equal compares values of the API.
package equal

import (
	"bytes"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// message is what the generated protobuf code of API types offers.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// Semantic is apiequality.Semantic.DeepEqual of two values that a protobuf encoding tells all about, as it does of the
// specs of all kinds. Nearly every write leaves nearly all as it is, and to compare encodings takes a tenth of the
// time: what is equal there is equal.
func Semantic[M message](a, b M) bool {
	size := a.Size()
	if size == 0 || size != b.Size() {
		return apiequality.Semantic.DeepEqual(a, b)
	}
	both := make([]byte, 2*size)
	if _, err := a.MarshalToSizedBuffer(both[:size]); err != nil {
		return apiequality.Semantic.DeepEqual(a, b)
	}
	if _, err := b.MarshalToSizedBuffer(both[size:]); err != nil {
		return apiequality.Semantic.DeepEqual(a, b)
	}
	return bytes.Equal(both[:size], both[size:]) || apiequality.Semantic.DeepEqual(a, b)
}
