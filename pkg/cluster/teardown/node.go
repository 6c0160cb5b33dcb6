package teardown

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// RemoveNode removes what a node that has ended leaves on the host: its cgroups, credentials, logs and files. Its
// directory goes last: while it is there, a removal that was broken off can be repeated.
func RemoveNode(ctx context.Context, l plan.Layout, mark, name string) error {
	errs := []error{RemoveCgroups(ctx, mark, name)}
	for _, dir := range []string{filepath.Dir(l.Kubeconfig("")), l.PKI("")} {
		// The pattern must not have the whole path, which may have special characters of patterns.
		files, err := fs.Glob(os.DirFS(dir), "*-"+name+".*")
		errs = append(errs, err)
		for _, file := range files {
			errs = append(errs, host.IgnoreMissing(os.Remove(filepath.Join(dir, file))))
		}
	}
	for _, dir := range []string{filepath.Dir(l.NodeLog(name, "")), filepath.Dir(l.NodeSocket(name)), l.Node(name)} {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
