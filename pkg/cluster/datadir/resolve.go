package datadir

import (
	"fmt"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/plan"
)

// Resolve returns the one path of a data directory, existing or not: it cleans an absolute path, and follows the links
// in the part that exists. A cluster's mark follows from this path, so two spellings of it would be two clusters. It
// refuses a path that can be no data directory.
func Resolve(path string) (string, error) {
	if err := plan.Layout(path).CheckPlace(); err != nil {
		return "", err
	}
	rest := ""
	for existing := filepath.Clean(path); ; existing, rest = filepath.Dir(existing),
		filepath.Join(filepath.Base(existing), rest) {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			resolved = filepath.Join(resolved, rest)
			return resolved, plan.Layout(resolved).CheckPlace()
		}
		if !os.IsNotExist(err) || existing == "/" {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
}
