package start

import (
	"errors"
	"os"
	"time"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// Write makes the files that the processes read. It can be repeated: certificates that are good stay.
func Write(c plan.Config) error {
	// The configuration comes first. `down` recognizes a cluster's directory by it, however soon a start is
	// interrupted.
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		return err
	}
	if err := controlplane.WriteTracing(c); err != nil {
		return err
	}
	if err := controlplane.WriteCloudConfig(c); err != nil {
		return err
	}
	if err := errors.Join(encryption.Make(c, time.Now()), pki.Make(c, time.Now())); err != nil {
		return err
	}
	// After the keys, which are made only for a cluster without data.
	if err := errors.Join(os.MkdirAll(c.Layout().At("etcd"), 0o700), datadir.SaveRelease(c.Layout())); err != nil {
		return err
	}
	return kubeconfig.WriteAll(c)
}

// WriteJoined makes the files that the processes of a machine that has joined read. A machine that is a node alone has
// no kubeconfigs of ours; those that it has lead to the balancer from now on.
func WriteJoined(c plan.Config) error {
	if c.HasControlPlane() {
		return errors.Join(datadir.SavePeers(c), Write(c))
	}
	return errors.Join(datadir.Save(c), datadir.SavePeers(c), os.MkdirAll(c.Layout().Run(), 0o700), join.Redirect(c))
}
