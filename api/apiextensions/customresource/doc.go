// Package customresource is what one version of a CustomResourceDefinition says of its objects, as pure functions: what
// they lose (Prune), gain (Default) and must be (Validate). pkg/apiserver serves them by it.
package customresource
