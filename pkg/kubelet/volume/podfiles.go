package volume

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// WriteHosts writes the pod's hosts file, which containers see as /etc/hosts, and returns its path. The file keeps its
// inode, because it is mounted into running containers: a rename would leave them the old one.
func (m *Manager) WriteHosts(uid types.UID, content []byte) (string, error) {
	dir, err := m.PodDir(uid)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make the pod's directory: %w", err)
	}
	path := filepath.Join(dir, "etc-hosts")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("write the pod's hosts file: %w", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return "", fmt.Errorf("open the pod's hosts file to all users: %w", err)
	}
	return path, nil
}

// TerminationLog makes a new empty file that any user of the container may write its termination message to, and
// returns its path: <pod>/containers/<container>/<8 hex digits>. Each start has its own, so that no message is taken
// for a later one.
func (m *Manager) TerminationLog(uid types.UID, container string) (string, error) {
	dir, err := m.TerminationLogs(uid, container)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make the container's directory: %w", err)
	}
	var b [4]byte
	rand.Read(b[:])
	path := filepath.Join(dir, hex.EncodeToString(b[:]))
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return "", fmt.Errorf("make the termination log: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return "", fmt.Errorf("open the termination log to all users: %w", err)
	}
	return path, nil
}

// TerminationLogs returns the directory of a container's termination messages.
func (m *Manager) TerminationLogs(uid types.UID, container string) (string, error) {
	dir, err := m.PodDir(uid)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(container) || strings.ContainsRune(container, '/') {
		return "", errors.New("the container's name is no file name")
	}
	return terminationLogs(dir, container), nil
}

// terminationLogs is the directory of a container's termination messages below the pod's directory.
func terminationLogs(podDir, container string) string {
	return filepath.Join(podDir, "containers", container)
}

// IsTerminationLog reports whether path is one that TerminationLog returns for the container. It guards the reading of
// messages: any other path in the runtime's description could be a file of the node.
func IsTerminationLog(podsDir string, uid types.UID, container, path string) bool {
	return fileName(string(uid)) && fileName(container) &&
		filepath.Dir(path) == terminationLogs(filepath.Join(podsDir, string(uid)), container)
}
