// Package plan says what a cluster is to be: what its user asked for, and every address, port, path and name that
// follows from that.
//
// It is pure. It reads no file and no clock and runs nothing: the same Config always gives the same cluster. What a
// machine has is given to
// it as a Machine, in which it finds the first place of addresses and ports that nobody else uses.
//
// # Values
//
// Config is what is written down of a cluster. What follows from it is grouped: Networks are its networks and the
// fixed addresses in
// them, Layout its paths below the data directory, a Member one of its control planes. Everything that the cluster
// makes on the host
// carries its mark, which follows from the data directory alone.
package plan
