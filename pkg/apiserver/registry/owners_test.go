package registry_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// TestOwnersOnce: kube-apiserver 1.36.3 keeps the first of owner references that are all the same, and warns in these
// words.
func TestOwnersOnce(t *testing.T) {
	t.Parallel()
	a := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "1"}
	b, named, blocking, freeing := a, a, a, a
	b.UID, named.Name, blocking.BlockOwnerDeletion, freeing.BlockOwnerDeletion = "2", "other", new(true), new(false)
	const rest = "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
	for name, c := range map[string]struct {
		owners, want []metav1.OwnerReference
		warned       string
	}{
		"none":  {nil, nil, ""},
		"two":   {[]metav1.OwnerReference{a, b}, []metav1.OwnerReference{a, b}, ""},
		"twice": {[]metav1.OwnerReference{b, a, a, b, b}, []metav1.OwnerReference{b, a}, "1, 2, 2"},
		"one uid": {[]metav1.OwnerReference{a, named, blocking, freeing},
			[]metav1.OwnerReference{a, named, blocking, freeing}, ""},
		"with bool": {[]metav1.OwnerReference{blocking, freeing,
			{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "1", BlockOwnerDeletion: new(true)}},
			[]metav1.OwnerReference{blocking, freeing}, "1"},
	} {
		var got, want []string
		obj := &metav1.ObjectMeta{OwnerReferences: slices.Clone(c.owners)}
		registry.OwnersOnce(obj, registry.OwnersSent, func(text string) { got = append(got, text) })
		if c.warned != "" {
			want = []string{".metadata.ownerReferences contains duplicate entries" + rest + c.warned}
		}
		if d := cmp.Diff(c.want, obj.OwnerReferences); d != "" || !slices.Equal(got, want) {
			t.Errorf("%s: %s, warned %q", name, d, got)
		}
	}

	g := store(t, "configmaps")
	var warned []string
	ctx := registry.WithCaller(t.Context(), registry.Caller{Manager: "m", Warn: func(text string) {
		warned = append(warned, text)
	}})
	create(t, g, configMap("c"))
	out, err := g.Update(ctx, "ns", "c", "", func(current runtime.Object) (runtime.Object, error) {
		current.(metav1.Object).SetOwnerReferences([]metav1.OwnerReference{a, a})
		return current, nil
	}, &metav1.UpdateOptions{})
	if err != nil || len(out.(metav1.Object).GetOwnerReferences()) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if want := []string{".metadata.ownerReferences contains duplicate entries after mutating admission happens" + rest +
		"1"}; !slices.Equal(warned, want) {
		t.Errorf("a change warns %q", warned)
	}
}
