package events

import (
	"math/rand"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"bonsai/api/scheme"
)

// TestRoundTrip: nothing of an event is lost on its way into storage and back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(2), serializer.NewCodecFactory(scheme.New()))
	for range 100 {
		in := &eventsv1.Event{}
		f.Fill(in)
		out := fromCore(toCore(in))
		out.TypeMeta = in.TypeMeta
		if !apiequality.Semantic.DeepEqual(in, out) {
			t.Fatalf("got %+v, want %+v", out, in)
		}
	}
}
