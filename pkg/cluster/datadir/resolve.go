package datadir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Resolve returns the one path of a data directory, existing or not: it cleans an absolute path, and follows the links
// in the part that exists. A cluster's mark follows from this path, so two spellings of it would be two clusters.
func Resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil // Validate refuses it
	}
	rest := ""
	for existing := filepath.Clean(path); ; existing, rest = filepath.Dir(existing),
		filepath.Join(filepath.Base(existing), rest) {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !os.IsNotExist(err) || existing == "/" {
			return "", fmt.Errorf("--data-dir %s: %w", path, err)
		}
	}
}
