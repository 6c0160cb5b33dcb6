package containerized

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// controlPlaneUser is the user and group of the containers of control planes. It is in no list of users.
const controlPlaneUser = 65532

// HandOut makes the certificates and keys of the cluster that are missing or about to expire, in its data directory,
// and gives each container the files that it needs and nothing else. volumes has a directory for each container, with
// its name, which is the data directory there. Only the process that calls HandOut sees the keys of the authorities.
//
// It can be repeated, and then renews what expires soon. It stops at the first failure: containers after that keep what
// they had.
func HandOut(c plan.Config, volumes string, now time.Time) error {
	if err := errors.Join(datadir.Save(c), encryption.Make(c, now), pki.Make(c, now)); err != nil {
		return err
	}
	if err := kubeconfig.WriteAll(c); err != nil {
		return err
	}
	roles, err := roles(c)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(volumes)
	if err != nil {
		return fmt.Errorf("list the containers' volumes: %w", err)
	}
	for _, e := range entries {
		r, known := roles[e.Name()]
		if !known {
			return fmt.Errorf("the cluster has nothing called %s", e.Name())
		}
		if err := give(c, filepath.Join(volumes, e.Name()), r); err != nil {
			return fmt.Errorf("give %s its credentials: %w", e.Name(), err)
		}
	}
	return nil
}

// role lists the files of the data directory that a container gets. They belong to the user that it runs as.
type role struct {
	files []string
	user  int
}

// roles returns the roles of all containers by their names. A process of a control plane needs the credentials that its
// flags name, and so gets exactly these. A process that needs another file must therefore name it in a flag as
// --name=path, or its container would lack the file.
func roles(c plan.Config) (map[string]role, error) {
	l := c.Layout()
	all := map[string]role{plan.Administrator: {
		files: []string{l.Config(), l.PKI("ca.crt"), l.Kubeconfig(plan.Administrator)}}}
	for _, layer := range controlplane.Processes(c, "") {
		for _, p := range layer {
			r := role{user: controlPlaneUser}
			for _, arg := range p.Argv {
				_, path, _ := strings.Cut(arg, "=")
				if (strings.HasPrefix(path, l.PKI("")) || strings.HasPrefix(path, l.At("kubeconfig")) ||
					path == l.Encryption()) &&
					!slices.Contains(r.files, path) {
					r.files = append(r.files, path)
				}
			}
			all[p.Name] = r
		}
	}
	for _, planned := range c.Nodes {
		n := node.Of(c, planned)
		config, err := n.Write()
		if err != nil {
			return nil, err
		}
		all[n.Name] = role{files: []string{config, l.PKI("ca.crt"), l.PKI("kubelet-server-" + n.Name + ".crt"),
			l.PKI("kubelet-server-" + n.Name + ".key"),
			l.Kubeconfig("kubelet-" + n.Name), l.Kubeconfig("proxy-" + n.Name), l.Kubeconfig("network-" + n.Name)}}
	}
	return all, nil
}

// give copies a role's files to the same places below dir, and removes all other credentials from there. It leaves
// files that have not changed, because the container may be running.
func give(c plan.Config, dir string, r role) error {
	// A container that changed its role, or a volume from another cluster, must not keep credentials.
	for _, of := range [...]string{"pki", "kubeconfig", "encryption"} {
		present, err := filepath.Glob(filepath.Join(dir, of, "*"))
		if err != nil {
			return err
		}
		for _, path := range present {
			if !slices.Contains(r.files, c.Layout().At(of, filepath.Base(path))) {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
	}
	for _, file := range r.files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(c.DataDir, file)
		if err != nil {
			return err
		}
		place := filepath.Join(dir, below)
		if present, err := os.ReadFile(place); err == nil && bytes.Equal(present, data) {
			continue
		}
		// The rename comes last, so that the container never sees a file that another user owns, or half of one.
		given := place + ".given"
		if err := host.WriteFile(given, data); err != nil {
			return err
		}
		if err := os.Chown(given, r.user, r.user); err != nil {
			return err
		}
		// The directories on the way belong to the same user, who could not enter them otherwise.
		for ; below != "."; below = filepath.Dir(below) {
			if err := os.Chown(filepath.Join(dir, filepath.Dir(below)), r.user, r.user); err != nil {
				return err
			}
		}
		if err := os.Rename(given, place); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}
