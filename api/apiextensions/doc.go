// Package apiextensions defines CustomResourceDefinitions, as pure functions: their defaults and their validation.
// Package customresource applies a definition to its objects.
package apiextensions
