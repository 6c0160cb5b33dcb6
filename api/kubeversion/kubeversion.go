// Package kubeversion names the release of Kubernetes that the components follow. No other package spells it.
//
// To follow another release, change the constants below, the k8s.io modules in go.mod (v0.MINOR.PATCH), the suite of
// test/conformance, and what was recorded from the old release: the feature gates (pkg/featuregates), the golden files
// of the API (test/compare), and whatever the tests then say.
package kubeversion

import "k8s.io/apimachinery/pkg/util/version"

// The parts of the release.
const (
	Major = "1"
	Minor = "37"
	// Patch has nothing to do with the API: it says which fixes of the components' behaviour are followed.
	Patch = "2"
)

const (
	// API is the version of the API, as in user agents and as an emulated version: "1.37".
	API = Major + "." + Minor
	// Release is the release as its tag names it.
	Release = "v" + API + "." + Patch
	// Git is what the binaries report as theirs: the release with our own name as build metadata.
	Git = Release + "+bonsai"
	// Previous is the minor version before: the oldest that other components of the cluster may be of.
	Previous = Major + ".36"
)

// Parsed returns the version of the API, to compare it.
func Parsed() *version.Version { return version.MustParse(API) }
