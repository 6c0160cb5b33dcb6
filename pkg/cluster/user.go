package cluster

import (
	"io"
	"os"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/plan"
)

// PrintKubeconfig prints the kubeconfig of the administrator of the cluster in dataDir.
func PrintKubeconfig(dataDir string, out io.Writer) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
