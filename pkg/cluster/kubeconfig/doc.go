// Package kubeconfig writes the files with which components and the user reach the API server.
//
// Components have a file each, below the data directory. The user's is the one that kubectl reads, to which a cluster
// adds a context, and from which it removes that context again. It may hold contexts that nobody else knows, so it is
// written whole or not at all, under client-go's lock, and with the rights of the user whose it is.
package kubeconfig
