// Package customresource serves the objects that CustomResourceDefinitions define. It follows the definitions, keeps
// their conditions (which names they have, whether they are served, what is left of their deletion), makes a row of
// each one that is established, and has the catalog serve it; when a definition is deleted, it deletes its objects
// first.
//
// What a definition's conditions are to be is decided by pure functions of it and of its group (names.go, decide.go).
// Every API server of a cluster runs this: what they have to agree on is in the definitions, written by
// compare-and-swap. A definition becomes Established when the server that says so serves it, so whoever waits for that
// finds it served; the others hear of it with the same event.
//
// Nothing of a definition's schema is in memory before somebody uses its objects: kept are its stored bytes, which are
// those of the cache, and its names.
package customresource
