// Package strictjson reads JSON into the Go types of the API as sigs.k8s.io/json does: names in the exact case, unknown
// and duplicate fields told apart from what cannot be decoded, each in upstream's words. It takes half of that
// library's time for a document without fault.
package strictjson

import (
	"reflect"

	fastjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"sigs.k8s.io/json"
)

// Decode reads doc into into, a pointer to an empty value of a Go type without fields of type any, whose numbers the
// two decoders take for different ones. strict are the unknown and duplicate fields; what can be read is in into all
// the same.
//
// A document is read by the fast decoder first, which refuses whatever the library would complain of. Only that is read
// again by the library, since clients know its words. So what the fast one accepts must be what the library accepts
// without a word, with the same result: TestDecode holds both against each other for every kind.
func Decode(doc []byte, into any) (strict []error, err error) {
	if fastjson.Unmarshal(doc, into, faultless) == nil {
		return nil, nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return json.UnmarshalStrict(doc, into)
}

// DecodeLoosely is Decode for whom unknown and duplicate fields do not matter: of duplicates the last one counts.
func DecodeLoosely(doc []byte, into any) error {
	if fastjson.Unmarshal(doc, into, faultless) == nil {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return json.UnmarshalCaseSensitivePreserveInts(doc, into)
}

// faultless are options that read as the library does, whose decoder is a variant of encoding/json, and that refuse
// whatever the library would report. They also refuse text that is not UTF-8: the library decides which character
// stands for it.
var faultless = fastjson.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	fastjson.MatchCaseInsensitiveNames(false),
	fastjson.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)
