// Package plan is what a cluster is to be: what its user asked for, and what follows from that. It is pure.
package plan
