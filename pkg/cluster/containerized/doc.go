// Package containerized is a cluster whose control planes and nodes are containers that somebody else runs, as
// deploy/compose does. It is put together from the same parts as a cluster of processes. There is no supervisor: one
// container hands out the certificates (HandOut), one administers the cluster (Administer), and nodes and API servers
// prepare their own container before they begin (EnterNode, StandAlone, EnterRouted).
package containerized
