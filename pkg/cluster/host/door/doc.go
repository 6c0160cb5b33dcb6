// Package door opens ports of the machine for a cluster in a user's own namespaces (package rootless), whose network is
// another than the machine's.
//
// A process of the same user outside listens in the cluster's place and passes the open socket through a unix socket,
// the door. So connections arrive in the cluster's process itself: nothing copies them twice, and their sources are
// the true ones. On a machine without such namespaces, the functions listen as package net does.
package door
