package receiver

import (
	"cmp"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

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

// The attributes by which a span says what it is about, and those of the semantic conventions that say so again.
const (
	objectPrefix     = "bonsai.object."
	ownerPrefix      = "bonsai.owner."
	relationKey      = "bonsai.link.relation"
	conventionPrefix = "k8s."
)

// errMessage does not say where: the message is another process's, which can do nothing about a place.
var errMessage = errors.New("the message is no ExportTraceServiceRequest")

// Decode reads the encoding of an ExportTraceServiceRequest, at most MaxSpans spans of it, and hands each to take. The
// record is valid until take returns; its texts are for ever.
//
// It reads the encoding itself and makes no message of it: two bytes of an empty span would become a Go value a hundred
// times as large, and a message of a few megabytes could take the memory of all. Here one span is in memory at a time.
// The fields: https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto.
func Decode(message []byte, take func(*traces.Record), drop func(traces.Reason)) error {
	d := decoder{take: take, drop: drop, texts: newTexts()}
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err == nil && f.number == 1 { // resource_spans
			err = d.resourceSpans(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field is one field of a message: bytes of a text, message or packed list, or else number's value.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// cursor reads the fields of a message in order.
type cursor struct{ rest []byte }

func (c *cursor) more() bool { return len(c.rest) > 0 }

// next reads one field, if there are more.
func (c *cursor) next() (f field, err error) {
	number, kind, n := protowire.ConsumeTag(c.rest)
	if n < 0 {
		return f, errMessage
	}
	rest := c.rest[n:]
	switch f.number = number; kind {
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(rest)
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(rest)
	case protowire.Fixed64Type:
		f.value, n = protowire.ConsumeFixed64(rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, rest)
	}
	if n < 0 {
		return f, errMessage
	}
	c.rest = rest[n:]
	return f, nil
}

// decoder reads one message.
type decoder struct {
	take  func(*traces.Record)
	drop  func(traces.Reason)
	texts *texts
	spans int
	// What is read of one span; the next one is read into the same.
	record        traces.Record
	object, owner apitraces.Object
}

// resourceSpans reads the spans of one program. The program may come after its spans, so that it is looked for first.
func (d *decoder) resourceSpans(message []byte) error {
	component, instance := "", ""
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err == nil && f.number == 1 { // resource
			component, instance, err = d.resource(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err == nil && f.number == 2 { // scope_spans
			err = d.scopeSpans(f.bytes, component, instance)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) scopeSpans(message []byte, component, instance string) error {
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return err
		}
		if f.number != 2 { // spans
			continue
		}
		if d.spans++; d.spans > MaxSpans {
			d.drop(traces.TooMany)
			continue
		}
		switch usable, err := d.span(f.bytes); {
		case err != nil:
			return err
		case !usable:
			d.drop(traces.Invalid)
		default:
			d.record.Component, d.record.Instance = component, instance
			d.take(&d.record)
		}
	}
	return nil
}

// resource returns the name of a program, and the node or the host where it runs.
func (d *decoder) resource(message []byte) (component, instance string, err error) {
	host := ""
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", "", err
		}
		if f.number != 1 { // attributes
			continue
		}
		key, value, err := d.keyValue(f.bytes)
		if err != nil {
			return "", "", err
		}
		switch value = safetext.Text(value); key {
		case "service.name":
			component = value
		case "service.instance.id":
			instance = value
		case "k8s.node.name", "host.name":
			if host == "" || key == "k8s.node.name" {
				host = value
			}
		}
	}
	if instance == "" {
		instance = host
	}
	return component, instance, nil
}

// span reads a span into d.record. It reports whether that can be kept.
func (d *decoder) span(message []byte) (usable bool, err error) {
	d.object, d.owner = apitraces.Object{}, apitraces.Object{}
	d.record = traces.Record{Attributes: d.record.Attributes[:0], Links: d.record.Links[:0]}
	r := &d.record
	var start, end uint64
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return false, err
		}
		switch f.number {
		case 1:
			copy(r.Trace[:], exactly(f.bytes, 16))
		case 2:
			copy(r.ID[:], exactly(f.bytes, 8))
		case 4:
			copy(r.Parent[:], exactly(f.bytes, 8))
		case 5:
			r.Name = d.texts.text(f.bytes)
		case 7:
			start = f.value
		case 8:
			end = f.value
		case 9:
			err = d.attribute(f.bytes)
		case 13:
			err = d.link(f.bytes)
		case 15:
			r.Error, err = d.failure(f.bytes)
		}
		if err != nil {
			return false, err
		}
	}
	if r.Trace == (traces.TraceID{}) || r.ID == (traces.SpanID{}) || start == 0 || start > math.MaxInt64 ||
		end > math.MaxInt64 {
		return false, nil
	}
	r.Start, r.End = int64(start), max(int64(start), int64(end)) // a clock that was set back
	d.about()
	slices.SortStableFunc(r.Attributes, func(a, b traces.Attribute) int { return strings.Compare(a.Key, b.Key) })
	r.Attributes = slices.CompactFunc(r.Attributes, func(a, b traces.Attribute) bool { return a.Key == b.Key })
	return true, nil
}

// about decides whether a span is one of an object: its trace is then the object's UID. Else what it says of an object
// is an attribute as any other, for example of a request that concerns one.
func (d *decoder) about() {
	r := &d.record
	if id, ok := traces.TraceOf(d.object.UID); ok && id == r.Trace {
		r.Object = &d.object
		if d.owner.Name != "" {
			r.Owner = &d.owner
		}
		r.Attributes = slices.DeleteFunc(r.Attributes, d.repeats)
		return
	}
	d.flatten(objectPrefix, &d.object)
	d.flatten(ownerPrefix, &d.owner)
}

// repeats reports whether an attribute of the semantic conventions says what the object says already.
func (d *decoder) repeats(a traces.Attribute) bool {
	rest, ok := strings.CutPrefix(a.Key, conventionPrefix)
	kind, what, ok2 := strings.Cut(rest, ".")
	switch {
	case !ok || !ok2:
		return false
	case kind == "namespace" && what == "name" && d.object.Namespace != "":
		return a.Value == d.object.Namespace
	case !strings.EqualFold(kind, d.object.Kind):
		return false
	}
	return what == "name" && a.Value == d.object.Name || what == "uid" && a.Value == string(d.object.UID)
}

func (d *decoder) flatten(prefix string, o *apitraces.Object) {
	if *o == (apitraces.Object{}) {
		return
	}
	for _, a := range [...]traces.Attribute{{Key: "group", Value: o.Group}, {Key: "kind", Value: o.Kind},
		{Key: "name", Value: o.Name}, {Key: "namespace", Value: o.Namespace}, {Key: "resource", Value: o.Resource},
		{Key: "uid", Value: string(o.UID)}} {
		if a.Value != "" && len(d.record.Attributes) < MaxAttributes {
			d.record.Attributes = append(d.record.Attributes, traces.Attribute{Key: prefix + a.Key, Value: a.Value})
		}
	}
}

// attribute reads one attribute of a span: a part of object or owner, or one of the record's.
func (d *decoder) attribute(message []byte) error {
	key, value, err := d.keyValue(message)
	if err != nil || key == "" {
		return err
	}
	if part, ok := strings.CutPrefix(key, objectPrefix); ok && partOf(&d.object, part, value) {
		return nil
	}
	if part, ok := strings.CutPrefix(key, ownerPrefix); ok && partOf(&d.owner, part, value) {
		return nil
	}
	if len(d.record.Attributes) < MaxAttributes {
		d.record.Attributes = append(d.record.Attributes, traces.Attribute{Key: key, Value: value})
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

func (d *decoder) link(message []byte) error {
	var l traces.Link
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return err
		}
		switch f.number {
		case 1:
			copy(l.Trace[:], exactly(f.bytes, 16))
		case 2:
			copy(l.Span[:], exactly(f.bytes, 8))
		case 4:
			key, value, err := d.keyValue(f.bytes)
			if err != nil {
				return err
			}
			if key == relationKey {
				l.Relation = safetext.Text(value)
			}
		}
	}
	if l.Trace != (traces.TraceID{}) && len(d.record.Links) < MaxLinks {
		d.record.Links = append(d.record.Links, l)
	}
	return nil
}

// failure returns why the step failed, "" if it did not.
func (d *decoder) failure(message []byte) (string, error) {
	text, failed := "", false
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", err
		}
		switch f.number {
		case 2:
			text = d.texts.message(f.bytes)
		case 3:
			failed = f.value == 2 // STATUS_CODE_ERROR
		}
	}
	if !failed {
		return "", nil
	}
	return cmp.Or(text, "failed"), nil
}

// keyValue reads an attribute: its key, "" if that is none, and its value as safetext.Message has it.
func (d *decoder) keyValue(message []byte) (key, value string, err error) {
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", "", err
		}
		switch f.number {
		case 1:
			if key = d.texts.text(f.bytes); len(key) > maxKey {
				key = "" // no convention has such a key; cut, two could become one
			}
		case 2:
			if value, err = d.anyValue(f.bytes, 0); err != nil {
				return "", "", err
			}
		}
	}
	return key, value, nil
}

// anyValue returns the text of a value, as safetext.Message has it.
func (d *decoder) anyValue(message []byte, depth int) (text string, err error) {
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", err
		}
		switch f.number {
		case 1: // string
			text = d.texts.message(f.bytes)
		case 2: // bool
			text = strconv.FormatBool(f.value != 0)
		case 3: // int
			text = strconv.FormatInt(int64(f.value), 10)
		case 4: // double
			text = strconv.FormatFloat(math.Float64frombits(f.value), 'g', -1, 64)
		case 5, 6: // list of values, of keys and values
			if text, err = d.list(f.bytes, f.number == 6, depth); err != nil {
				return "", err
			}
		case 7: // bytes
			text = hex.EncodeToString(f.bytes[:min(len(f.bytes), safetext.MaxText)])
		}
	}
	return text, nil
}

// list returns the text of a list's first values: [a b], or of a map's: [k=v].
func (d *decoder) list(message []byte, keyed bool, depth int) (string, error) {
	if depth >= maxDepth {
		return "…", nil
	}
	var items []string
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", err
		}
		if f.number != 1 || len(items) > maxItems {
			continue
		}
		if len(items) == maxItems {
			items = append(items, "…")
			continue
		}
		item := ""
		if keyed {
			item, err = d.pair(f.bytes, depth)
		} else {
			item, err = d.anyValue(f.bytes, depth+1)
			item = safetext.Text(item)
		}
		if err != nil {
			return "", err
		}
		items = append(items, safetext.Message(item))
	}
	return safetext.Message("[" + strings.Join(items, " ") + "]"), nil
}

// pair returns the text of a map's item. Of its values the last one counts, or a message of one item would be copied
// for each of its bytes.
func (d *decoder) pair(message []byte, depth int) (string, error) {
	key, value := "", ""
	for m := (cursor{message}); m.more(); {
		f, err := m.next()
		if err != nil {
			return "", err
		}
		switch f.number {
		case 1:
			key = d.texts.text(f.bytes)
		case 2:
			if value, err = d.anyValue(f.bytes, depth+1); err != nil {
				return "", err
			}
		}
	}
	return key + "=" + safetext.Text(value), nil
}

// exactly returns bytes that are n, or none: an ID of another length is no ID.
func exactly(b []byte, n int) []byte {
	if len(b) != n {
		return nil
	}
	return b
}
