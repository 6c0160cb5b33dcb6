// Package apiextensions is what we know of CustomResourceDefinitions, as pure functions: their defaults and their
// validation. What a definition says of its objects is package customresource.
package apiextensions
