package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Load reads the configuration of the cluster in dataDir. The error is os.ErrNotExist if there is none.
func Load(dataDir string) (plan.Config, error) {
	var c plan.Config
	data, err := os.ReadFile(plan.Layout(dataDir).Config())
	if err != nil {
		return c, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read the cluster's configuration %s: %w", plan.Layout(dataDir).Config(), err)
	}
	if data, err = os.ReadFile(plan.Layout(dataDir).Peers()); err == nil {
		if err := json.Unmarshal(data, &c.Peers); err != nil {
			return c, fmt.Errorf("read the cluster's control planes %s: %w", plan.Layout(dataDir).Peers(), err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("read the cluster's control planes: %w", err)
	}
	c.ControlPlanes = max(1, c.ControlPlanes) // versions that knew no other number did not write it
	// a copied or moved directory is another cluster: it owns nothing that carries the first one's mark
	c.DataDir = dataDir
	return c, nil
}

// Save writes the configuration of a cluster into its data directory, whole or not at all.
func Save(c plan.Config) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return host.KeepFile(c.Layout().Config(), data)
}

// SavePeers writes the control planes of all machines. The supervisor calls it while it runs, and commands before.
func SavePeers(c plan.Config) error {
	data, err := json.MarshalIndent(c.Peers, "", "  ")
	if err != nil {
		return err
	}
	return host.KeepFile(c.Layout().Peers(), data)
}

// CheckFirst returns an error on a machine that has joined a cluster, for commands about what the first machine alone
// has: its nodes, its networks and the cluster's settings.
func CheckFirst(c plan.Config) error {
	if c.Joined != nil {
		return fmt.Errorf("this machine has joined the cluster at %s, and the cluster's settings are on its first machine, %s",
			c.Joined.Server, c.Joined.Through())
	}
	return nil
}

// LoadFirst is LoadExisting for commands about what a cluster's first machine alone has.
func LoadFirst(dataDir string) (plan.Config, error) {
	c, err := LoadExisting(dataDir)
	return c, errors.Join(err, CheckFirst(c))
}

// LoadExisting is Load for commands that need a cluster: its error says how to start one.
func LoadExisting(dataDir string) (plan.Config, error) {
	c, err := Load(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("no cluster in %s (bonsai up)", dataDir)
	}
	return c, err
}

// LoadControlPlane is LoadExisting for commands that need the control plane on this machine.
func LoadControlPlane(dataDir string) (plan.Config, error) {
	c, err := LoadExisting(dataDir)
	return c, errors.Join(err, c.CheckControlPlane())
}
