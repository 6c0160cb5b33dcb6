package cm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bonsai/pkg/durable"
)

// StateFile is a file in which a Provider keeps what pods have across restarts of the kubelet.
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

// Write replaces the content. After a crash, even of the machine, there is the old content or the new one.
func (f StateFile) Write(data []byte) error {
	path := filepath.Join(f.Dir, f.Name)
	if err := durable.Replace(path+".new", path, data); err != nil {
		return fmt.Errorf("keep what pods have: %w", err)
	}
	return nil
}
