package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"bonsai/api/kubeversion"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// The release that last served a cluster stands beside what it wrote into etcd, and so in snapshots, too.

// CheckRelease returns an error if a newer minor version than ours has served the cluster: its etcd may have an own
// format, and objects of kinds and with fields that would be lost. A cluster of before such a file has none.
func CheckRelease(l plan.Layout) error {
	text, err := os.ReadFile(l.Release())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read which release has served the cluster: %w", err)
	}
	served, err := version.ParseSemantic(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", l.Release(), err)
	}
	if newer(served, kubeversion.Parsed()) {
		return fmt.Errorf("the cluster in %s was served by v%s of Kubernetes, and this is %s: a cluster cannot be "+
			"downgraded; use the newer release, or restore a snapshot from before its upgrade (bonsai snapshot list)", l,
			served, kubeversion.Release)
	}
	return nil
}

// newer reports whether served is of a newer minor version than own.
func newer(served, own *version.Version) bool {
	return version.MajorMinor(served.Major(), served.Minor()).GreaterThan(own)
}

// SaveRelease notes that our release serves the cluster from now on.
func SaveRelease(l plan.Layout) error {
	if err := CheckRelease(l); err != nil {
		return err
	}
	return host.KeepFile(l.Release(), []byte(kubeversion.Release+"\n"))
}
