// Package plan describes a cluster: what its user asked for, and every address, port, path and name that follows from
// that.
//
// It is pure. It reads no file and no clock and runs nothing: the same Config always gives the same cluster. What a
// machine has comes to it as a Machine, which finds the first slot of addresses and ports that is free there.
//
// # Values
//
// Config is written down for each cluster. What follows from it comes in groups: Networks are its networks and the
// fixed addresses in them, Layout has its paths below the data directory, and a Member is one of its control planes.
// Everything that the cluster makes on the host carries its mark, which follows from the data directory alone.
package plan
