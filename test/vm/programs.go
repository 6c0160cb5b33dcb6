package vm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

const (
	programsLabel = "bonsai"
	programsMount = "/media/bonsai"
	// programsSize is that of the programs' disk, in bytes. The file is sparse.
	programsSize = 4 << 30
)

// Programs is a disk with what a test tries. A machine has it read-only at programsMount.
type Programs struct{ disk string }

// MakePrograms makes a disk of a directory's files at the path disk.
func MakePrograms(ctx context.Context, dir, disk string) (Programs, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Programs{}, err
	}
	return Programs{disk}, errors.Join(ignoreMissing(os.Remove(disk)),
		makeDisk(ctx, disk, dir, programsLabel, programsSize))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
