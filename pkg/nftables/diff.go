package nftables

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/knftables"
)

// diff gathers changes and writes them in the order that the kernel needs: containers before what refers to them, old
// elements before new ones, and what is unused last. A transaction in another order is refused as a whole.
type diff struct {
	tx                     *knftables.Transaction
	newSets, oldSets       map[string]Set
	newChains, emptyChains map[string]Chain // to create; to flush
	oldChains, rules       map[string]Chain // to delete; to fill
	emptySets              map[string]Set   // to flush
	gone, come             map[Element]string
}

func newDiff(tx *knftables.Transaction) *diff {
	return &diff{
		tx: tx, newSets: map[string]Set{}, oldSets: map[string]Set{}, newChains: map[string]Chain{},
		emptyChains: map[string]Chain{},
		oldChains:   map[string]Chain{}, rules: map[string]Chain{}, emptySets: map[string]Set{},
		gone: map[Element]string{}, come: map[Element]string{},
	}
}

func (d *diff) dropElement(e Element, value string) { d.gone[e] = value }
func (d *diff) addElement(e Element, value string)  { d.come[e] = value }

// parts compares the chains and sets of a part.
func (d *diff) parts(old, next Fragment) {
	for name, s := range next.Sets {
		if _, ok := old.Sets[name]; !ok {
			d.newSets[name] = s
		}
	}
	for name, s := range old.Sets {
		if _, ok := next.Sets[name]; !ok {
			d.oldSets[name] = s
		}
	}
	for name, c := range next.Chains {
		was, ok := old.Chains[name]
		switch {
		case !ok:
			d.newChains[name], d.rules[name] = c, c
		case !slices.Equal(was.Rules, c.Rules):
			d.emptyChains[name], d.rules[name] = c, c
		}
	}
	for name, c := range old.Chains {
		if _, ok := next.Chains[name]; !ok {
			d.emptyChains[name], d.oldChains[name] = c, c
		}
	}
}

// over adapts a plan that starts from nothing to a table that still has left, names by object type. Planned objects
// that exist are emptied first, except for sets that the kernel fills: their elements stay. Objects that are not
// planned go.
func (d *diff) over(left map[string][]string) {
	for _, name := range left["chain"] {
		if c, stays := d.newChains[name]; stays {
			d.emptyChains[name] = c
		} else {
			d.emptyChains[name], d.oldChains[name] = Chain{}, Chain{}
		}
	}
	for _, kind := range []string{"set", "map"} {
		for _, name := range left[kind] {
			s, stays := d.newSets[name]
			switch {
			case !stays:
				d.oldSets[name] = Set{IsMap: kind == "map"}
			case s.Seconds == 0:
				d.emptySets[name] = s
			}
		}
	}
}

func (d *diff) write() {
	for _, name := range sorted(d.newSets) {
		d.tx.Add(d.newSets[name].object(name))
	}
	for _, name := range sorted(d.newChains) {
		d.tx.Add(d.newChains[name].object(name))
	}
	for _, name := range sorted(d.emptySets) {
		d.tx.Flush(d.emptySets[name].object(name))
	}
	for _, e := range slices.SortedFunc(maps.Keys(d.gone), compareElements) {
		if _, goes := d.oldSets[e.In]; !goes { // with its set
			d.tx.Delete(e.object(d.gone[e]))
		}
	}
	for _, name := range sorted(d.emptyChains) {
		d.tx.Flush(&knftables.Chain{Name: name})
	}
	for _, name := range sorted(d.rules) {
		for _, r := range d.rules[name].Rules {
			d.tx.Add(&knftables.Rule{Chain: name, Rule: r})
		}
	}
	for _, e := range slices.SortedFunc(maps.Keys(d.come), compareElements) {
		d.tx.Add(e.object(d.come[e]))
	}
	for _, name := range sorted(d.oldChains) {
		d.tx.Delete(&knftables.Chain{Name: name})
	}
	for _, name := range sorted(d.oldSets) {
		d.tx.Delete(d.oldSets[name].object(name))
	}
}

func (c Chain) object(name string) *knftables.Chain {
	o := &knftables.Chain{Name: name}
	if c.Base != nil {
		o.Type, o.Hook, o.Priority = &c.Base.Kind, &c.Base.Hook, &c.Base.Priority
	}
	return o
}

func (s Set) object(name string) knftables.Object {
	if s.IsMap {
		return &knftables.Map{Name: name, Type: s.Type}
	}
	o := &knftables.Set{Name: name, Type: s.Type}
	if s.Seconds > 0 {
		o.Flags = []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag}
		o.Timeout = knftables.PtrTo(time.Duration(s.Seconds) * time.Second)
	}
	return o
}

func (e Element) object(value string) *knftables.Element {
	key := strings.Split(e.Key, " . ")
	if value == "" {
		return &knftables.Element{Set: e.In, Key: key}
	}
	return &knftables.Element{Map: e.In, Key: key, Value: []string{value}}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func compareElements(a, b Element) int {
	return cmp.Or(strings.Compare(a.In, b.In), strings.Compare(a.Key, b.Key))
}
