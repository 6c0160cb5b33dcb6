// Package kernel checks that the kernel has the features that a cluster uses, and loads the modules that have them.
//
// A feature is found by using it, in a network namespace that goes with the try: the names of modules say too little,
// since a kernel may have built the feature in.
package kernel
