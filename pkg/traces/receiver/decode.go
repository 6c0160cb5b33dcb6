package receiver

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"

	apitraces "bonsai/api/traces"
	"bonsai/pkg/safetext"
	"bonsai/pkg/traces"
)

// What one message and one span may have. What is beyond is left out.
const (
	// MaxSpans is how many spans are taken of one message. Exporters send 512.
	MaxSpans = 4096
	// MaxAttributes and MaxLinks are for one span. An OpenTelemetry SDK sends at most 128 of each.
	MaxAttributes = 128
	MaxLinks      = 32
	// maxKey bounds the key of an attribute, in bytes.
	maxKey = 128
	// maxItems bounds the items of a list that are shown, and maxDepth how deep lists are in one another.
	maxItems = 16
	maxDepth = 3
)

// The attributes by which a span says what it is about.
const (
	objectPrefix = "bonsai.object."
	ownerPrefix  = "bonsai.owner."
	relationKey  = "bonsai.link.relation"
)

// errMessage does not say where: the message is another process's, which can do nothing about a place.
var errMessage = errors.New("the message is no ExportTraceServiceRequest")

// Decode reads the encoding of an ExportTraceServiceRequest, at most MaxSpans spans of it, and hands each to take.
//
// It reads the encoding itself and makes no message of it: two bytes of an empty span would become a Go value a hundred
// times as large, and a message of a few megabytes could take the memory of all. Here one span is in memory at a time.
// The fields: https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto.
func Decode(message []byte, take func(*traces.Record), drop func(traces.Reason)) error {
	d := decoder{take: take, drop: drop}
	return fields(message, func(f field) error {
		if f.number == 1 { // resource_spans
			return d.resourceSpans(f.bytes)
		}
		return nil
	})
}

// field is one field of a message: bytes of a text, message or packed list, or else number's value.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// fields calls each for all fields of a message, in order.
func fields(message []byte, each func(field) error) error {
	for len(message) > 0 {
		var f field
		n := 0
		f.number, f.kind, n = protowire.ConsumeTag(message)
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		switch f.kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		default:
			n = protowire.ConsumeFieldValue(f.number, f.kind, message)
		}
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// decoder reads one message.
type decoder struct {
	take  func(*traces.Record)
	drop  func(traces.Reason)
	spans int
}

// resourceSpans reads the spans of one program. The program may come after its spans, so that it is looked for first.
func (d *decoder) resourceSpans(message []byte) error {
	component, instance := "", ""
	if err := fields(message, func(f field) error {
		if f.number != 1 { // resource
			return nil
		}
		var err error
		component, instance, err = resource(f.bytes)
		return err
	}); err != nil {
		return err
	}
	return fields(message, func(f field) error {
		if f.number != 2 { // scope_spans
			return nil
		}
		return fields(f.bytes, func(f field) error {
			if f.number != 2 { // spans
				return nil
			}
			if d.spans++; d.spans > MaxSpans {
				d.drop(traces.TooMany)
				return nil
			}
			r, err := span(f.bytes)
			switch {
			case err != nil:
				return err
			case r == nil:
				d.drop(traces.Invalid)
			default:
				r.Component, r.Instance = component, instance
				d.take(r)
			}
			return nil
		})
	})
}

// resource returns the name of a program, and the node or the host where it runs.
func resource(message []byte) (component, instance string, err error) {
	host := ""
	err = fields(message, func(f field) error {
		if f.number != 1 { // attributes
			return nil
		}
		key, value, err := keyValue(f.bytes)
		switch key {
		case "service.name":
			component = safetext.Text(value)
		case "service.instance.id":
			instance = safetext.Text(value)
		case "k8s.node.name", "host.name":
			if host == "" || key == "k8s.node.name" {
				host = safetext.Text(value)
			}
		}
		return err
	})
	if instance == "" {
		instance = host
	}
	return component, instance, err
}

// span reads a span; nil without an error is one that cannot be kept.
func span(message []byte) (*traces.Record, error) {
	r := &traces.Record{}
	var start, end uint64
	var object, owner apitraces.Object
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			copy(r.Trace[:], exactly(f.bytes, 16))
		case 2:
			copy(r.ID[:], exactly(f.bytes, 8))
		case 4:
			copy(r.Parent[:], exactly(f.bytes, 8))
		case 5:
			r.Name = safetext.Text(valid(f.bytes))
		case 7:
			start = f.value
		case 8:
			end = f.value
		case 9:
			return attribute(r, &object, &owner, f.bytes)
		case 13:
			return link(r, f.bytes)
		case 15:
			return failure(r, f.bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.Trace == (traces.TraceID{}) || r.ID == (traces.SpanID{}) || start == 0 || start > math.MaxInt64 ||
		end > math.MaxInt64 {
		return nil, nil
	}
	r.Start, r.End = int64(start), max(int64(start), int64(end)) // a clock that was set back
	about(r, object, owner)
	slices.SortStableFunc(r.Attributes, func(a, b traces.Attribute) int { return strings.Compare(a.Key, b.Key) })
	r.Attributes = slices.CompactFunc(r.Attributes, func(a, b traces.Attribute) bool { return a.Key == b.Key })
	return r, nil
}

// about decides whether a span is one of an object: its trace is then the object's UID. Else what it says of an object
// is an attribute as any other, for example of a request that concerns one.
func about(r *traces.Record, object, owner apitraces.Object) {
	if id, ok := traces.TraceOf(object.UID); ok && id == r.Trace {
		r.Object = &object
		if owner.Name != "" {
			r.Owner = &owner
		}
		return
	}
	for prefix, o := range map[string]apitraces.Object{objectPrefix: object, ownerPrefix: owner} {
		for _, a := range []traces.Attribute{{Key: "group", Value: o.Group}, {Key: "kind", Value: o.Kind},
			{Key: "name", Value: o.Name}, {Key: "namespace", Value: o.Namespace}, {Key: "resource", Value: o.Resource},
			{Key: "uid", Value: string(o.UID)}} {
			if a.Value != "" && len(r.Attributes) < MaxAttributes {
				r.Attributes = append(r.Attributes, traces.Attribute{Key: prefix + a.Key, Value: a.Value})
			}
		}
	}
}

// attribute reads one attribute of a span: a part of object or owner, or one of the record's.
func attribute(r *traces.Record, object, owner *apitraces.Object, message []byte) error {
	key, value, err := keyValue(message)
	if err != nil || key == "" {
		return err
	}
	if part, ok := strings.CutPrefix(key, objectPrefix); ok && partOf(object, part, value) {
		return nil
	}
	if part, ok := strings.CutPrefix(key, ownerPrefix); ok && partOf(owner, part, value) {
		return nil
	}
	if len(r.Attributes) < MaxAttributes {
		r.Attributes = append(r.Attributes, traces.Attribute{Key: key, Value: safetext.Message(value)})
	}
	return nil
}

// partOf sets what an attribute says of an object. It reports whether objects have such a part.
func partOf(o *apitraces.Object, part, value string) bool {
	value = safetext.Text(value)
	switch part {
	case "group":
		o.Group = value
	case "resource":
		o.Resource = value
	case "kind":
		o.Kind = value
	case "namespace":
		o.Namespace = value
	case "name":
		o.Name = value
	case "uid":
		o.UID = types.UID(value)
	default:
		return false
	}
	return true
}

func link(r *traces.Record, message []byte) error {
	var l traces.Link
	if err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			copy(l.Trace[:], exactly(f.bytes, 16))
		case 2:
			copy(l.Span[:], exactly(f.bytes, 8))
		case 4:
			key, value, err := keyValue(f.bytes)
			if key == relationKey {
				l.Relation = safetext.Text(value)
			}
			return err
		}
		return nil
	}); err != nil {
		return err
	}
	if l.Trace != (traces.TraceID{}) && len(r.Links) < MaxLinks {
		r.Links = append(r.Links, l)
	}
	return nil
}

// failure reads whether the step failed, and why.
func failure(r *traces.Record, message []byte) error {
	text, failed := "", false
	if err := fields(message, func(f field) error {
		switch f.number {
		case 2:
			text = safetext.Message(valid(f.bytes))
		case 3:
			failed = f.value == 2 // STATUS_CODE_ERROR
		}
		return nil
	}); err != nil {
		return err
	}
	if failed && text == "" {
		text = "failed"
	}
	if failed {
		r.Error = text
	}
	return nil
}

// keyValue reads an attribute. The value is not clean yet, and at most as long as the message that it came in.
func keyValue(message []byte) (key, value string, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			if key = safetext.Text(valid(f.bytes)); len(key) > maxKey {
				key = "" // no convention has such a key; cut, two could become one
			}
		case 2:
			var err error
			value, err = anyValue(f.bytes, 0)
			return err
		}
		return nil
	})
	return key, value, err
}

// anyValue returns the text of a value.
func anyValue(message []byte, depth int) (text string, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1: // string
			text = valid(f.bytes)
		case 2: // bool
			text = strconv.FormatBool(f.value != 0)
		case 3: // int
			text = strconv.FormatInt(int64(f.value), 10)
		case 4: // double
			text = strconv.FormatFloat(math.Float64frombits(f.value), 'g', -1, 64)
		case 5, 6: // list of values, of keys and values
			var err error
			text, err = list(f.bytes, f.number == 6, depth)
			return err
		case 7: // bytes
			text = hex.EncodeToString(f.bytes[:min(len(f.bytes), safetext.MaxText)])
		}
		return nil
	})
	return text, err
}

// list returns the text of a list's first values: [a b], or of a map's: [k=v].
func list(message []byte, keyed bool, depth int) (string, error) {
	if depth >= maxDepth {
		return "…", nil
	}
	var items []string
	err := fields(message, func(f field) error {
		if f.number != 1 || len(items) > maxItems {
			return nil
		}
		if len(items) == maxItems {
			items = append(items, "…")
			return nil
		}
		item, err := "", error(nil)
		if keyed {
			key, value := "", ""
			err = fields(f.bytes, func(f field) error {
				var err error
				switch f.number { // the last one counts, or a message of one item would be copied for each of its bytes
				case 1:
					key = safetext.Text(valid(f.bytes))
				case 2:
					value, err = anyValue(f.bytes, depth+1)
				}
				return err
			})
			item = key + "=" + safetext.Text(value)
		} else {
			item, err = anyValue(f.bytes, depth+1)
			item = safetext.Text(item)
		}
		items = append(items, safetext.Message(item))
		return err
	})
	return "[" + strings.Join(items, " ") + "]", err
}

// exactly returns bytes that are n, or none: an ID of another length is no ID.
func exactly(b []byte, n int) []byte {
	if len(b) != n {
		return nil
	}
	return b
}

// valid returns the part of a text that can end up in a record, as far as it is UTF-8. It does not copy more than that:
// a message may be one text.
func valid(b []byte) string {
	const most = 4 * safetext.MaxError // runes of four bytes, some of them left out
	if len(b) > most {
		b = b[:most]
		for len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "")
}
