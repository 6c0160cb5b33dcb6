// Package dns waits for a cluster's DNS, and makes it available to the other programs of this machine.
package dns
