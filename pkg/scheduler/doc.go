// Package scheduler gives each pending pod a node. Reflectors keep the cache of nodes and the queue of pods up to date;
// one goroutine takes pods off the queue, decides on a snapshot, and assumes the pod on its node; the binding itself
// runs concurrently with the next decisions.
//
// The walk of a pod: handlers.go (seen by a watch) → queue → cycle.go (schedule one) → decide (which node) → bind.go
// (reserve, permit, bind) or failure.go (condition, event, back to the queue). podstatus writes why a pod waits
// into its status, in order and never after the binding. Everything under way ends with the context of Run.
package scheduler
