// Package customresource applies one version of a CustomResourceDefinition to its objects, as pure functions: it
// removes unknown fields (Prune), sets defaults (Default) and checks the rules (Validate). pkg/apiserver serves custom
// resources with it.
package customresource
