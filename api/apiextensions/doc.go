// Package apiextensions is what we know of CustomResourceDefinitions, as pure functions: their defaults and their
// validation. Package customresource applies a definition to its objects.
package apiextensions
