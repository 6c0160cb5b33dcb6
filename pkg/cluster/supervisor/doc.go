// Package supervisor is the process that keeps a cluster running: it is put together from the parts beside it. Launch
// starts it in the background for bonsai up, and Run is also the life of bonsai start --foreground.
//
// Every child dies with it, so ending the supervisor ends the cluster.
package supervisor
