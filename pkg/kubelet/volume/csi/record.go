package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bonsai/pkg/durable"
)

// record is what is needed to take a volume down. It is kept as vol_data.json next to the mount point, in the format of
// Kubernetes' kubelet.
type record struct {
	SpecName   string `json:"specVolID,omitempty"`
	Handle     string `json:"volumeHandle"`
	Driver     string `json:"driverName"`
	Node       string `json:"nodeName,omitempty"`
	Attachment string `json:"attachmentID,omitempty"`
	// Lifecycle is Persistent or Ephemeral, "" of a staged volume.
	Lifecycle string `json:"volumeLifecycleMode,omitempty"`
	// Device: the volume is a block device.
	Device bool `json:"device,omitempty"`
}

// Values of Lifecycle.
const (
	persistent = "Persistent"
	inline     = "Ephemeral"
)

const recordName = "vol_data.json"

// readRecord returns the record in a directory, nil if there is none.
func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of the volume: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read what is known of the volume: %w", err)
	}
	return r, nil
}

// write stores the record in a directory, which it makes. The record is there as a whole or not at all, even after a
// power failure.
func (r *record) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode what is known of the volume: %w", err)
	}
	if err := durable.Replace(filepath.Join(dir, "."+recordName), filepath.Join(dir, recordName), data); err != nil {
		return fmt.Errorf("keep what is known of the volume: %w", err)
	}
	return nil
}

// forget removes the record and the directory, in which nothing else may be.
func forget(dir string) error {
	for _, name := range []string{recordName, "." + recordName, ""} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the volume's directory: %w", err)
		}
	}
	return nil
}
