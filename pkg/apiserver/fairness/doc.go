// Package fairness is API priority and fairness: it decides when a request may be worked on. FlowSchemas put a request
// into a flow and a priority level (classify.go), the level has a part of the server's seats and queues for what must
// wait (level.go, package queueset), and levels lend each other what they do not need (package seats).
//
// What is configured is compiled into a classifier that requests read without a lock, and made again when objects
// change. Each server does all of this for itself.
package fairness
