package garbagecollector

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func ref(uid string, block bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: uid, UID: types.UID(uid),
		BlockOwnerDeletion: &block}
}

func see(g *graph, uid string, finalizer string, refs ...metav1.OwnerReference) todo {
	return seeIn(g, "ns", uid, finalizer, refs...)
}

func seeIn(g *graph, ns, uid string, finalizer string, refs ...metav1.OwnerReference) todo {
	o := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: uid, UID: types.UID(uid), OwnerReferences: refs}}
	if finalizer != "" {
		t := metav1.Now()
		o.DeletionTimestamp, o.Finalizers = &t, []string{finalizer}
	}
	return g.observe(identity{resource: schema.GroupVersionResource{Resource: "things"},
		kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), namespace: ns, name: uid, uid: types.UID(uid)}, o)
}

func has(t *testing.T, got []types.UID, want ...types.UID) {
	t.Helper()
	got = slices.Compact(slices.Sorted(slices.Values(got)))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("to check: %v, want %v", got, want)
	}
}

func TestGraph(t *testing.T) {
	t.Parallel()
	t.Run("owner goes, dependents are checked", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		has(t, see(g, "owner", "").check)
		has(t, see(g, "a", "", ref("owner", true)).check)
		has(t, see(g, "b", "", ref("owner", false)).check)
		has(t, g.remove("owner").check, "a", "b")
	})
	t.Run("an owner nobody has seen is looked up, and goes with its last dependent", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		has(t, see(g, "a", "", ref("ghost", true)).check, "ghost")
		if n, ok := g.get("ghost"); !ok || !n.virtual || n.namespace != "ns" {
			t.Errorf("ghost = %+v, %v", n, ok)
		}
		g.remove("a")
		if _, ok := g.get("ghost"); ok {
			t.Error("the ghost stays for ever")
		}
	})
	t.Run("an owner looked up in vain stays until nobody refers to it", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		seeIn(g, "wrong", "stray", "", ref("owner", true))
		seeIn(g, "right", "child", "", ref("owner", true))
		has(t, g.miss("owner").check, "stray", "child")
		has(t, seeIn(g, "right", "late", "", ref("owner", true)).check, "late")
		has(t, seeIn(g, "right", "owner", "").check, "stray")
		has(t, seeIn(g, "right", "owner", metav1.FinalizerDeleteDependents).check, "owner", "stray", "child", "late")
		if n := len(g.dependentsOf("owner")); n != 3 {
			t.Errorf("%d dependents", n)
		}
	})
	t.Run("an owner that the watch brought during the lookup is kept", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		seeIn(g, "wrong", "stray", "", ref("owner", true))
		seeIn(g, "right", "owner", "")
		seeIn(g, "right", "child", "", ref("owner", true))
		has(t, g.miss("owner").check)
		if n, ok := g.get("owner"); !ok || n.virtual || len(g.dependentsOf("owner")) != 2 {
			t.Errorf("owner = %+v, %v", n, ok)
		}
		g = newGraph()
		seeIn(g, "wrong", "stray", "", ref("ghost", true))
		g.miss("ghost")
		if g.remove("stray"); len(g.nodes) != 0 {
			t.Errorf("left: %v", g.nodes)
		}
	})
	t.Run("foreground deletion checks dependents, then the owner after each", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		see(g, "owner", "")
		see(g, "a", "", ref("owner", true))
		has(t, see(g, "owner", metav1.FinalizerDeleteDependents).check, "owner", "a")
		deps := g.dependentsOf("owner")
		if len(deps) != 1 || !deps[0].blocking {
			t.Errorf("dependents = %+v", deps)
		}
		has(t, see(g, "late", "", ref("owner", true)).check, "late")
		has(t, g.remove("a").check, "owner")
	})
	t.Run("a dependent that stops blocking wakes its owner", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		see(g, "owner", metav1.FinalizerDeleteDependents)
		see(g, "a", "", ref("owner", true))
		has(t, see(g, "a", "", ref("owner", false)).check, "owner")
	})
	t.Run("orphaning", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		got := see(g, "owner", metav1.FinalizerOrphanDependents)
		has(t, got.check)
		if !slices.Equal(got.orphan, []types.UID{"owner"}) {
			t.Errorf("orphan = %v", got.orphan)
		}
		if again := see(g, "owner", metav1.FinalizerOrphanDependents); len(again.orphan) != 0 {
			t.Error("every later event orphans again")
		}
	})
	t.Run("the end of an owner is remembered while somebody refers to it, and only for references that mean it",
		func(t *testing.T) {
			t.Parallel()
			g := newGraph()
			see(g, "owner", "")
			see(g, "a", "", ref("owner", true))
			if g.sawEnd(ref("owner", true), "ns") {
				t.Error("it lives")
			}
			has(t, g.remove("owner").check, "a")
			has(t, see(g, "late", "", ref("owner", true)).check, "late")
			other := ref("owner", true)
			other.Kind = "Impostor"
			named := ref("owner", true)
			named.Name = "other"
			version := ref("owner", true)
			version.APIVersion = "apps/v2"
			for _, c := range []struct {
				ref  metav1.OwnerReference
				ns   string
				want bool
			}{{ref("owner", true), "ns", true}, {version, "ns", true}, {other, "ns", false}, {named, "ns", false},
				{ref("owner", true), "elsewhere", false}} {
				if got := g.sawEnd(c.ref, c.ns); got != c.want {
					t.Errorf("%+v in %s: %v", c.ref, c.ns, got)
				}
			}
			g.remove("a")
			if g.remove("late"); len(g.nodes) != 0 {
				t.Errorf("left: %v", g.nodes)
			}
			// The end of what only references told of proves nothing.
			see(g, "a", "", ref("ghost", true))
			if g.remove("ghost"); g.sawEnd(ref("ghost", true), "ns") {
				t.Error("nobody saw the ghost")
			}
		})
	t.Run("what is watched no more is forgotten, but for what others refer to", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		see(g, "owner", "")
		see(g, "child", "", ref("owner", true))
		see(g, "alone", "")
		stay := identity{resource: schema.GroupVersionResource{Resource: "others"}, namespace: "ns", name: "stays",
			uid: "stays"}
		g.observe(stay, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ref("owner", true)}}})
		g.leave(schema.GroupVersionResource{Resource: "things"})
		if n, ok := g.get("owner"); !ok || !n.virtual || n.gone || len(g.nodes) != 2 ||
			len(g.dependentsOf("owner")) != 1 {
			t.Errorf("owner = %+v, %d nodes", n, len(g.nodes))
		}
	})
	t.Run("a reference that means something else than the object of its UID is looked up", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		wrong := ref("owner", true)
		wrong.Kind = "Secret"
		has(t, see(g, "early", "", wrong).check, "owner")
		has(t, see(g, "owner", "").check, "early")
		has(t, see(g, "kind", "", wrong).check, "kind")
		wrong = ref("owner", true)
		wrong.Name = "other"
		has(t, see(g, "name", "", wrong).check, "name")
		has(t, seeIn(g, "elsewhere", "namespace", "", ref("owner", true)).check, "namespace")
		newer := ref("owner", true)
		newer.APIVersion = "apps/v2"
		has(t, see(g, "version", "", newer).check)
	})
	t.Run("a lost reference is a reason to look", func(t *testing.T) {
		t.Parallel()
		g := newGraph()
		see(g, "o1", "")
		see(g, "a", "", ref("o1", false))
		has(t, see(g, "a", "").check, "a")
		has(t, g.remove("o1").check)
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	refs := []metav1.OwnerReference{ref("x", true), ref("y", true)}
	for _, c := range []struct {
		name   string
		x, y   ownerState
		deps   []dependent
		want   action
		drop   []types.UID
		policy metav1.DeletionPropagation
	}{
		{"both stay", solid, solid, nil, keep, nil, ""},
		{"one stays", solid, absent, nil, unlink, []types.UID{"y"}, ""},
		{"one stays, one waits", waiting, solid, nil, unlink, []types.UID{"x"}, ""},
		{"both gone", absent, absent, nil, erase, nil, metav1.DeletePropagationBackground},
		{"owner waits", waiting, absent, nil, erase, nil, metav1.DeletePropagationBackground},
		{"owner waits, has dependents", waiting, absent, []dependent{{}}, erase, nil,
			metav1.DeletePropagationForeground},
		{"circle", waiting, absent, []dependent{{foreground: true}}, unblock, nil, ""},
	} {
		states := map[types.UID]ownerState{"x": c.x, "y": c.y}
		v, drop := judge(refs, states, c.deps)
		if v != c.want || c.want == unlink && !slices.Equal(drop, c.drop) {
			t.Errorf("%s: action %v drop %v, want %v %v", c.name, v, drop, c.want, c.drop)
		}
		if c.want == erase {
			if p := policy(nil, states, len(c.deps)); p != c.policy {
				t.Errorf("%s: policy %s, want %s", c.name, p, c.policy)
			}
		}
	}
	if v, _ := judge(nil, nil, nil); v != keep {
		t.Error("an object without owners must be kept")
	}
	if p := policy([]string{metav1.FinalizerOrphanDependents}, nil, 0); p != metav1.DeletePropagationOrphan {
		t.Errorf("policy of an orphaning object = %s", p)
	}
}

// A resource that is served no more is watched until its last events must have come.
func TestOver(t *testing.T) {
	t.Parallel()
	m, now := &monitor{}, time.Unix(0, 0)
	for i, c := range []struct {
		served bool
		after  time.Duration
		over   bool
	}{{true, 0, false}, {false, 0, false}, {false, patience, false}, {true, 0, false}, {false, time.Hour, false},
		{false, patience, false}, {false, 1, true}} {
		now = now.Add(c.after)
		if got := m.over(c.served, now); got != c.over {
			t.Errorf("%d: %v", i, got)
		}
	}
}
