package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownerState is what a lookup found about an owner. The zero value is solid, so that a reference that nobody looked up
// would keep its object.
type ownerState int

const (
	solid   ownerState = iota // it exists and stays
	absent                    // it does not exist (any more)
	waiting                   // it is being deleted in the foreground and waits for its dependents
)

// action is what the collector does with an object because of the state of its owners.
//
// Two of them end a wait instead of an object: unlink when another owner keeps the object, unblock when objects wait
// for each other.
type action int

const (
	keep   action = iota // nothing
	unlink               // drop the references in drop, keep the object
	// stop blocking the owners, then delete in the foreground: dependents wait for each other in a circle
	unblock
	erase // delete it
)

// judge decides about an object with these owners. dependents are its own. It is pure: every fact was read before.
//
//   - No owner references: keep. The object belongs to nobody and is never collected.
//   - Some owner is solid: keep the object, but drop the references to owners that are absent, and to those that wait.
//     The owner that waits is then free to go.
//   - No owner is solid, one waits, and a dependent of the object is in foreground deletion: unblock. The owners and
//     the dependents may form a circle, in which each would wait for the next forever.
//   - No owner is solid otherwise: erase.
func judge(refs []metav1.OwnerReference, states map[types.UID]ownerState, dependents []dependent) (do action,
	drop []types.UID) {
	if len(refs) == 0 {
		return keep, nil
	}
	var held, waits bool
	for _, ref := range refs {
		switch states[ref.UID] {
		case solid:
			held = true
		case waiting:
			waits = true
			drop = append(drop, ref.UID)
		default:
			drop = append(drop, ref.UID)
		}
	}
	switch {
	case held && len(drop) == 0:
		return keep, nil
	case held:
		return unlink, drop
	case waits && slices.ContainsFunc(dependents, func(d dependent) bool { return d.foreground }):
		return unblock, nil
	default:
		return erase, nil
	}
}

// policy chooses how to delete an object that its owners left: as its own finalizers ask, in the foreground if an owner
// waits for it and it has dependents itself, else in the background.
//
// The finalizers come first because they are an earlier request of a user, about the dependents of this very object.
// The foreground in the second case keeps the promise made to the waiting owner: the whole tree below it is gone before
// it.
func policy(finalizers []string, states map[types.UID]ownerState, dependents int) metav1.DeletionPropagation {
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	if dependents > 0 {
		for _, s := range states {
			if s == waiting {
				return metav1.DeletePropagationForeground
			}
		}
	}
	return metav1.DeletePropagationBackground
}

// without returns the references except for those to the given uids.
func without(refs []metav1.OwnerReference, drop []types.UID) []metav1.OwnerReference {
	out := []metav1.OwnerReference{}
	for _, r := range refs {
		if !slices.Contains(drop, r.UID) {
			out = append(out, r)
		}
	}
	return out
}

// unblocked returns the references with none of them blocking its owner's deletion.
func unblocked(refs []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(refs)
	no := false
	for i := range out {
		out[i].BlockOwnerDeletion = &no
	}
	return out
}
