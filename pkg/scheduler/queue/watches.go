package queue

import (
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
)

// watches are the unschedulable pods by what may help them, so that an event costs as much as there are different answers to
// it, and not as there are pods: pods of which an Interest reads the same are asked for together. What it finds is what
// Profile.Helps says of each pod.
type watches struct {
	// byInterest has the pods that a plug-in's Interest speaks for, by what it reads of them.
	byInterest map[*framework.Interest]map[string]map[types.UID]*item
	// always are the pods that every event may help.
	always map[types.UID]*item
}

// place is where a pod stands in byInterest.
type place struct {
	interest *framework.Interest
	key      string
}

// add begins to watch for it.
func (w *watches) add(p *framework.Profile, it *item) {
	for name := range it.Failed {
		interests, ok := p.Interests[name]
		if !ok {
			w.addAlways(it)
			return
		}
		for i := range interests {
			at := place{&interests[i], interests[i].Key(it.PodInfo)}
			w.file(at, it)
			it.places = append(it.places, at)
		}
	}
	if len(it.Failed) == 0 {
		w.addAlways(it)
	}
}

func (w *watches) addAlways(it *item) {
	if w.always == nil {
		w.always = map[types.UID]*item{}
	}
	w.always[it.Pod.UID] = it
}

func (w *watches) file(at place, it *item) {
	if w.byInterest == nil {
		w.byInterest = map[*framework.Interest]map[string]map[types.UID]*item{}
	}
	groups := w.byInterest[at.interest]
	if groups == nil {
		groups = map[string]map[types.UID]*item{}
		w.byInterest[at.interest] = groups
	}
	if groups[at.key] == nil {
		groups[at.key] = map[types.UID]*item{}
	}
	groups[at.key][it.Pod.UID] = it
}

// remove ends what add began.
func (w *watches) remove(it *item) {
	uid := it.Pod.UID
	delete(w.always, uid)
	for _, at := range it.places {
		groups := w.byInterest[at.interest]
		if delete(groups[at.key], uid); len(groups[at.key]) == 0 {
			delete(groups, at.key)
		}
	}
	it.places = nil
}

// helped returns the pods that e may help.
func (w *watches) helped(e framework.Event) map[types.UID]*item {
	out := map[types.UID]*item{}
	for uid, it := range w.always {
		out[uid] = it
	}
	for interest, groups := range w.byInterest {
		if !interest.Concerns(e) {
			continue
		}
		for _, group := range groups {
			asked := false
			for uid, it := range group {
				if !asked && !interest.Helps(it.PodInfo, e) {
					break // any of them speaks for all
				}
				asked = true
				out[uid] = it
			}
		}
	}
	return out
}
