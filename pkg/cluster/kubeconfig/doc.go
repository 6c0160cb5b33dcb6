// Package kubeconfig writes the files with which components and the user reach the API server.
//
// Each component has its own file, below the data directory. The user's kubeconfig is the one that kubectl reads: a
// cluster adds a context to it and removes that context again. It may have contexts that are in no other file. So it is
// written as a whole or not at all, under client-go's lock, and with the rights of its owner.
package kubeconfig
