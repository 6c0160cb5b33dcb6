// Package machine looks at the machine before a cluster starts: which clusters it has and where their data is, which
// addresses, routes and ports are taken and by whom, and whether there is room. It changes nothing, except that Lock
// makes the file that it locks.
package machine
