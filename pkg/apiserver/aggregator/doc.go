// Package aggregator makes one API of several servers. APIServices say who serves a group version: this server itself
// (local), or one behind a Service, to which requests for it are handed on in the name of who asks, after
// authentication and authorization.
//
// It keeps the APIServices of what this server serves itself (autoregistration), the condition Available of all of
// them, and a ServiceIndex of them for routing, discovery and OpenAPI. Each server behind a Service is looked after by
// a goroutine of its own: one that is dead or slow holds up nobody else.
package aggregator
