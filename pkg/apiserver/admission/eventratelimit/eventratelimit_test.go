package eventratelimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
)

func event(ns, by, object string) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create,
		Resource:  corev1.SchemeGroupVersion.WithResource("events"),
		Namespace: ns, User: &request.User{Name: by},
		Object: &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: object}}}
}

// limited returns a plug-in of one limit that lets one event through and then none: its clock stands still.
func limited(kind string, size int32) admission.Validator {
	v := New(&Configuration{Limits: []Limit{{Type: kind, QPS: 1, Burst: 1, CacheSize: size}}}).Validator
	v.(plugin).limits[0].clock = clocktesting.NewFakePassiveClock(time.Now())
	return v
}

// TestLimits: what shares a bound. The second event is one of another namespace, user or object.
func TestLimits(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		other  *admission.Attributes
		shared bool
		key    string
	}{
		server: {event("b", "v", "q"), true, ""}, namespace: {event("b", "u", "p"), false, "a"},
		user: {event("a", "v", "p"), false, "u"}, sourceAndObject: {event("a", "u", "q"), false, "Podp"},
	} {
		p := limited(kind, 0)
		if err := p.Validate(t.Context(), event("a", "u", "p")); err != nil {
			t.Errorf("%s: the first: %v", kind, err)
		}
		err := p.Validate(t.Context(), event("a", "u", "p"))
		if want := fmt.Sprintf("Too many requests: limit reached on type %s for key %s", kind, c.key); err == nil ||
			!apierrors.IsTooManyRequests(err) || err.Error() != want {
			t.Errorf("%s: %v, want %s", kind, err, want)
		}
		if err := p.Validate(t.Context(), c.other); (err != nil) != c.shared {
			t.Errorf("%s: another one: %v", kind, err)
		}
	}
}

// TestNotLimited: dry runs, deletions, and what is no event. Events through events.k8s.io are the same events.
func TestNotLimited(t *testing.T) {
	t.Parallel()
	p := limited(server, 0)
	dry, gone, other := event("a", "u", "p"), event("a", "u", "p"), event("a", "u", "p")
	dry.DryRun, gone.Operation, gone.Object = true, admission.Delete, nil
	other.Object = &corev1.ConfigMap{}
	for _, a := range []*admission.Attributes{dry, gone, other, event("a", "u", "p")} {
		if err := p.Validate(t.Context(), a); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	view := event("a", "u", "p")
	view.RequestResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	if err := p.Validate(t.Context(), view); !apierrors.IsTooManyRequests(err) {
		t.Errorf("an event of events.k8s.io: %v", err)
	}
}

// TestLongKeys: whoever makes up sources as long as an event may be fills neither the memory of the server nor its
// answers with them, and sources that begin alike do not share a bound.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	p := limited(sourceAndObject, 0)
	long := strings.Repeat("x", 1<<20)
	for _, name := range []string{"a", "b"} {
		if err := p.Validate(t.Context(), event("a", "u", long+name)); err != nil {
			t.Errorf("the first of %s: %v", name, err)
		}
	}
	err := p.Validate(t.Context(), event("a", "u", long+"a"))
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "for key Podxxx") {
		t.Errorf("the second: %.2000v", err)
	}
	if _, ok := p.(plugin).limits[0].known.Get(idOf("Pod" + long + "a")); !ok {
		t.Error("the key is not remembered by what is as short as all others")
	}
}

// TestBounded: whoever makes up namespaces holds no more buckets than the cache has.
func TestBounded(t *testing.T) {
	t.Parallel()
	p := limited(namespace, 3)
	for i := range 1000 {
		if err := p.Validate(t.Context(), event(strings.Repeat("n", i), "u", "p")); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.(plugin).limits[0].known.Len(); n != 3 {
		t.Errorf("%d buckets", n)
	}
}
