package kubeconfig

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
)

// WriteAll writes one kubeconfig for each identity of the cluster, with its credentials inside. Each start writes all
// of them again, since certificates may have been renewed. A failure leaves some of them as they were.
func WriteAll(c plan.Config) error {
	names := []string{plan.Administrator}
	for _, m := range c.Members() {
		names = append(names, m.Of("controller-manager"), m.Of("scheduler"))
	}
	if plan.SendsSpans(c) && c.HasControlPlane() {
		names = append(names, tracestore.Name)
	}
	for _, node := range c.Nodes {
		names = append(names, "kubelet-"+node.Name(), "proxy-"+node.Name(), "network-"+node.Name())
	}
	for _, name := range names {
		kubeconfig, err := Of(c, name)
		if err != nil {
			return fmt.Errorf("make the kubeconfig of %s: %w", name, err)
		}
		data, err := clientcmd.Write(*kubeconfig)
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", name, err)
		}
		if err := host.WriteFile(c.Layout().Kubeconfig(name), data); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

// Of returns the configuration with which an identity reaches the API server. The administrator reaches it by loopback:
// they are on the host, and may keep the file longer than the cluster lasts (plan.Config.LocalServer).
func Of(c plan.Config, name string) (*clientcmdapi.Config, error) {
	l := c.Layout()
	var data [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		b, err := os.ReadFile(l.PKI(file))
		if err != nil {
			return nil, err
		}
		data[i] = b
	}
	server := c.Server()
	if name == plan.Administrator {
		server = c.LocalServer()
	}
	k := clientcmdapi.NewConfig()
	own := c.Context()
	k.Clusters[own] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: data[0]}
	k.AuthInfos[own] = &clientcmdapi.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	k.Contexts[own] = &clientcmdapi.Context{Cluster: own, AuthInfo: own}
	k.CurrentContext = own
	return k, nil
}
