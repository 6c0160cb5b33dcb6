package nft

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
)

// diff gathers changes and writes them in the order the kernel needs: containers before what refers to them, elements go before
// elements come, and what is unused goes last.
type diff struct {
	tx                     *knftables.Transaction
	newSets, oldSets       map[string]set
	newChains, emptyChains map[string]chain // to create; to flush
	oldChains, rules       map[string]chain // to delete; to fill
	emptySets              map[string]set   // to flush
	gone, come             map[element]string
}

func newDiff(tx *knftables.Transaction) *diff {
	return &diff{
		tx: tx, newSets: map[string]set{}, oldSets: map[string]set{}, newChains: map[string]chain{}, emptyChains: map[string]chain{},
		oldChains: map[string]chain{}, rules: map[string]chain{}, emptySets: map[string]set{}, gone: map[element]string{}, come: map[element]string{},
	}
}

func (d *diff) dropElement(e element, value string) { d.gone[e] = value }
func (d *diff) addElement(e element, value string)  { d.come[e] = value }

// parts compares the chains and sets of a part.
func (d *diff) parts(old, next fragment) {
	for name, s := range next.sets {
		if _, ok := old.sets[name]; !ok {
			d.newSets[name] = s
		}
	}
	for name, s := range old.sets {
		if _, ok := next.sets[name]; !ok {
			d.oldSets[name] = s
		}
	}
	for name, c := range next.chains {
		was, ok := old.chains[name]
		switch {
		case !ok:
			d.newChains[name], d.rules[name] = c, c
		case !slices.Equal(was.rules, c.rules):
			d.emptyChains[name], d.rules[name] = c, c
		}
	}
	for name, c := range old.chains {
		if _, ok := next.chains[name]; !ok {
			d.emptyChains[name], d.oldChains[name] = c, c
		}
	}
}

// over makes a plan that starts from nothing start from a table that has left, names by object type. What is planned and there
// already is emptied first, except for the sets that the kernel fills: their elements stay. What is not planned goes.
func (d *diff) over(left map[string][]string) {
	for _, name := range left["chain"] {
		if c, stays := d.newChains[name]; stays {
			d.emptyChains[name] = c
		} else {
			d.emptyChains[name], d.oldChains[name] = chain{}, chain{}
		}
	}
	for _, kind := range []string{"set", "map"} {
		for _, name := range left[kind] {
			s, stays := d.newSets[name]
			switch {
			case !stays:
				d.oldSets[name] = set{isMap: kind == "map"}
			case s.seconds == 0:
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
		if _, goes := d.oldSets[e.in]; !goes { // with its set
			d.tx.Delete(e.object(d.gone[e]))
		}
	}
	for _, name := range sorted(d.emptyChains) {
		d.tx.Flush(&knftables.Chain{Name: name})
	}
	for _, name := range sorted(d.rules) {
		for _, r := range d.rules[name].rules {
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

func (c chain) object(name string) *knftables.Chain {
	o := &knftables.Chain{Name: name}
	if c.base != nil {
		o.Type, o.Hook, o.Priority = &c.base.kind, &c.base.hook, &c.base.priority
	}
	return o
}

func (s set) object(name string) knftables.Object {
	if s.isMap {
		return &knftables.Map{Name: name, Type: s.typ}
	}
	o := &knftables.Set{Name: name, Type: s.typ}
	if s.seconds > 0 {
		o.Flags = []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag}
		o.Timeout = knftables.PtrTo(time.Duration(s.seconds) * time.Second)
	}
	return o
}

func (e element) object(value string) *knftables.Element {
	key := strings.Split(e.key, " . ")
	if value == "" {
		return &knftables.Element{Set: e.in, Key: key}
	}
	return &knftables.Element{Map: e.in, Key: key, Value: []string{value}}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func compareElements(a, b element) int {
	return cmp.Or(strings.Compare(a.in, b.in), strings.Compare(a.key, b.key))
}

func compareNames(a, b proxy.Name) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
