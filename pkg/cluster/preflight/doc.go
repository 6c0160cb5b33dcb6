// Package preflight compares a machine with what a cluster needs, before anything is made, and names everything that is
// missing at once, with the command that gives it.
//
// Read looks at the machine and fills a description. The rules are pure: they turn a description into findings, so each
// can be tried on machines that nobody has at hand.
package preflight
