package traces

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
)

// whole has something in every field.
func whole() *Record {
	return &Record{Trace: TraceID{1, 15: 2}, ID: SpanID{3}, Parent: SpanID{4}, Name: "kubelet.sandbox",
		Component: "kubelet", Instance: "n1", Sender: "n2",
		Start: 1_700_000_000_000_000_001, End: 1_700_000_000_250_000_001,
		Attributes: []Attribute{{"a", "1"}, {"b", ""}}, Error: "no room",
		Links:  []Link{{Trace: TraceID{9}, Span: SpanID{8}, Relation: traces.RelationRequest}, {}},
		Object: &traces.Object{Group: "g", Resource: "pods", Kind: "Pod", Namespace: "ns", Name: "web", UID: "u"},
		Owner:  &traces.Object{Kind: "Job", Name: "job"}}
}

// TestEncoding: a record comes back as it was, and no beginning of its encoding is taken for a record.
func TestEncoding(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Record{"whole": whole(), "empty": {}} {
		b := r.Encode([]byte("x"))[1:]
		got, err := Decode(b)
		if diff := cmp.Diff(r, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		for n := range b {
			if got, err := Decode(b[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes are %+v", name, n, len(b), got)
			}
		}
		if _, err := Decode(append(b, 0)); err == nil {
			t.Errorf("%s: a byte too many is taken", name)
		}
	}
}

// FuzzDecode: no bytes break the decoder, and what it takes it writes the same again.
func FuzzDecode(f *testing.F) {
	f.Add(whole().Encode(nil))
	f.Add((&Record{}).Encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(r.Encode(nil))
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

// TestTraceOf: the trace of an object is its UID, if that is a UUID.
func TestTraceOf(t *testing.T) {
	t.Parallel()
	for _, uid := range []string{"0a1b2c3d-0000-4000-8000-0123456789ab", "0a1b2c3d0000400080000123456789ab"} {
		if id, ok := TraceOf(types.UID(uid)); !ok || id.String() != "0a1b2c3d0000400080000123456789ab" {
			t.Error(uid, id, ok)
		}
	}
	for _, uid := range []string{"", "x", "0a1b2c3d00004000800001234567890100", "0A1B2C3D-0000-4000-8000-0123456789ab",
		"0a1b2c3d-0000-4000-8000-0123456789ag", "0a1b2c3d-0000-4000-8000-0123456789-b"} {
		if id, ok := TraceOf(types.UID(uid)); ok {
			t.Errorf("%q has the trace %s", uid, id)
		}
	}
}
