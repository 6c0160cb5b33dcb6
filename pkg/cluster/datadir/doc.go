// Package datadir is a cluster's data directory as a whole: its one path, the configuration that is kept in it, and the
// lock that a running supervisor holds on it. Package plan says where everything else is below it.
package datadir
