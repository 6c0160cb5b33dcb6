// Package controller is the engine that every controller of kube-controller-manager runs on, and the small parts they
// share: a keyed work loop with back-off and panic recovery (Loop), shared caches (Informers, Informer), the
// controller that deletes what is over (Cleaner), and the metadata of kinds that are known only at run time (Monitor).
// What only some of them share has packages of its own: owned, podcontrol, podtemplate and history for workloads,
// backends for what describes the pods behind Services, podindex for the indices of pods. An index that one controller
// alone reads is made there, with NewIndex.
//
// A controller is a struct with a method Reconcile(ctx, key) and its watches. It lives in a package of its own below
// this one, knows nothing of its siblings and is plugged in by name in cmd/kube-controller-manager.
//
// The contract of Reconcile: the key says which object to look at, never what happened to it. Objects that come out of
// an Informer are shared and read-only: DeepCopy before changing one. Reconcile is called for one key by one worker at
// a time.
package controller

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient"
)

// Key names an object; Namespace is empty for cluster-scoped kinds.
type Key = types.NamespacedName

// Deps is what the wiring gives every controller.
type Deps struct {
	// Client writes with the controller's own identity.
	Client *apiclient.Client
	// Informers are the caches that all controllers share; they are read with the manager's identity.
	Informers *Informers
	// Events records what the controller did to an object.
	Events record.EventRecorder
	// Log already carries the controller's name.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Workers is how many keys are reconciled at once; at least 1.
	Workers int
	// Now is the clock; time.Now outside of tests.
	Now func() time.Time
}
