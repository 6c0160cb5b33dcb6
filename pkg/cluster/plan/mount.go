package plan

import (
	"fmt"
	"path/filepath"
)

// Check returns what is wrong with a mount by itself.
func (m Mount) Check() error {
	for _, p := range []struct{ field, path string }{{"hostPath", m.HostPath}, {"nodePath", m.NodePath}} {
		if !filepath.IsAbs(p.path) || filepath.Clean(p.path) == "/" {
			return fmt.Errorf("%s: must be an absolute path below /, not %q", p.field, p.path)
		}
	}
	return nil
}

// String writes a mount as docker run does: HOST:NODE, with :ro where nodes cannot write.
func (m Mount) String() string {
	text := m.HostPath + ":" + m.NodePath
	if m.ReadOnly {
		text += ":ro"
	}
	return text
}

// Mount shows a directory or file of the host at a path in a node.
type Mount struct {
	HostPath, NodePath string
	ReadOnly           bool `json:",omitempty"`
}
