// Package publish leads connections to ports of the host on to nodes, as a user process.
//
// It publishes node ports, TCP and UDP, and relays DNS. Rules of the packet filter would do the first with less work,
// but a process can try the next node when one does not answer, holds every client to a bound, and leaves nothing
// behind when it is killed.
package publish
