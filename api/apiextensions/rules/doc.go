// Package rules is x-kubernetes-validations: the CEL rules in the schema of a CustomResourceDefinition. Check tells
// what is wrong with them when they are written, Compile makes of them what objects are held to. Limits and messages
// are Kubernetes', functions and costs come from its CEL library.
package rules
