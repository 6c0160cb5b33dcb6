package volume

import (
	"fmt"
	"io"

	"bonsai/pkg/kubelet/filetree"
)

// maxFile bounds a file that the kubelet reads from a volume, in bytes: the pod chooses its size.
const maxFile = 1 << 20

// ReadFile returns the content of a regular file in a mounted volume. The pod may replace files at any time, so links
// are not followed out of the volume. A missing file is fs.ErrNotExist.
func (m Mounted) ReadFile(path string) ([]byte, error) {
	file, err := filetree.OpenFileBelow(m.HostPath, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %q of the volume: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%q of the volume is larger than %d bytes", path, maxFile)
	}
	return data, nil
}
