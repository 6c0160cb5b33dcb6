// Package structural compiles the schema of a version of a CustomResourceDefinition, and prunes, defaults and validates
// objects by it.
//
// Check judges the schema of a CustomResourceDefinition, keyword by keyword (check*.go). Compile makes a Schema of one
// that passed. A Schema is data; each of its uses is a walk over it and a value in a file of its own: prune.go,
// default.go, embedded.go, lists.go and validate.go. For CEL's library, cel.go presents it as a common.Schema.
//
// Compiled schemas are made on demand and thrown away afterwards. What is stored is the CustomResourceDefinition.
//
// Structural schemas are what the Kubernetes documentation on custom resources requires of apiextensions.k8s.io/v1: one
// schema gives every value its type, so the server can prune and default an object without guessing. The rules, their
// order and their messages are upstream's, because tools and tests compare them.
package structural
