package customresource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func named(plural, singular, kind, list string, short ...string) v1.CustomResourceDefinitionNames {
	return v1.CustomResourceDefinitionNames{Plural: plural, Singular: singular, Kind: kind, ListKind: list,
		ShortNames: short}
}

// TestAccept has what a real kube-apiserver v1.36.3 accepted and said.
func TestAccept(t *testing.T) {
	t.Parallel()
	first := named("as", "a", "A", "AList", "x", "aa")
	for name, c := range map[string]struct {
		wanted, accepted, want v1.CustomResourceDefinitionNames
		conflict               conflict
	}{
		"nothing in the way": {wanted: named("zs", "z", "Z", "ZList", "zz"),
			want: named("zs", "z", "Z", "ZList", "zz")},
		"short name": {wanted: named("bs", "b", "B", "BList", "x"),
			want: named("bs", "b", "B", "BList"), conflict: conflict{"ShortNamesConflict", `"x" is already in use`}},
		"two short names": {wanted: named("bs", "b", "B", "BList", "x", "y", "aa"),
			want:     named("bs", "b", "B", "BList"),
			conflict: conflict{"ShortNamesConflict", `["x" is already in use, "aa" is already in use]`}},
		"kind": {wanted: named("cs", "a", "A", "AList"), want: named("cs", "", "", ""),
			conflict: conflict{"ListKindConflict", `"AList" is already in use`}},
		"kind alone": {wanted: named("cs", "c", "A", "CList"), want: named("cs", "c", "", "CList"),
			conflict: conflict{"KindConflict", `"A" is already in use`}},
		"singular": {wanted: named("ds", "a", "D", "DList"), want: named("ds", "", "D", "DList"),
			conflict: conflict{"SingularConflict", `"a" is already in use`}},
		"a kind is no resource": {wanted: named("A", "AList", "a", "as"), want: named("A", "AList", "a", "as")},
		"a list kind is a kind": {wanted: named("es", "as", "E", "A"), want: named("es", "", "E", ""),
			conflict: conflict{"ListKindConflict", `"A" is already in use`}},
		"what it has stays its": {wanted: named("as", "a", "A", "AList", "x"),
			accepted: named("as", "a", "A", "AList", "x"), want: named("as", "a", "A", "AList", "x")},
		"a wish in vain keeps what was": {wanted: named("bs", "a", "B", "BList"),
			accepted: named("bs", "b", "B", "BList"), want: named("bs", "b", "B", "BList"),
			conflict: conflict{"SingularConflict", `"a" is already in use`}},
	} {
		got, why := accept(c.wanted, c.accepted, []v1.CustomResourceDefinitionNames{first})
		if diff := cmp.Diff(c.want, got); diff != "" || why != c.conflict {
			t.Errorf("%s: %+v %s", name, why, diff)
		}
	}
}

func TestInOrder(t *testing.T) {
	t.Parallel()
	view := map[string]*definition{}
	for name, second := range map[string]int64{"c": 1, "b": 2, "a": 2} {
		crd := &v1.CustomResourceDefinition{}
		crd.CreationTimestamp.Time = at(second)
		view[name] = &definition{crd: crd}
	}
	if got := inOrder(map[string]bool{"a": true, "b": true, "c": true, "gone": true},
		view); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Error(got)
	}
}
