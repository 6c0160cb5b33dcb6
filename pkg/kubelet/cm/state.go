package cm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// StateFile is a file in which a Provider keeps over restarts of the kubelet what pods have.
type StateFile struct{ Dir, Name string }

// Read returns what was written, nil if nothing was.
func (f StateFile) Read() ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(f.Dir, f.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what pods have: %w", err)
	}
	return data, nil
}

// Write replaces what was written: after a crash, of the machine too, there is the old content or the new one.
func (f StateFile) Write(data []byte) error {
	path := filepath.Join(f.Dir, f.Name)
	if err := writeSynced(path+".new", data); err != nil {
		return fmt.Errorf("write what pods have: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep what pods have: %w", err)
	}
	return nil
}

// writeSynced writes a file that is on the disk when it returns. One that is renamed before that may be there without its content when the machine
// has lost its power, and a kubelet cannot begin that does not know what pods have.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
