// Package rules is x-kubernetes-validations: the CEL rules in the schema of a CustomResourceDefinition. Check finds
// what is wrong with the rules when a definition is written. Compile makes programs of them, which validate objects.
// Limits and messages are Kubernetes'; functions and costs come from its CEL library.
package rules
