// Package clusterevent has the changes of a cluster that may make a waiting pod schedulable, and the interests by which
// plug-ins say which of these changes may help the pods that they turned down.
package clusterevent
