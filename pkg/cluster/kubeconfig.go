package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes one kubeconfig per identity, credentials inside.
func (c Config) writeKubeconfigs() error {
	names := []string{administrator, "controller-manager", "scheduler"}
	for i := 1; i <= c.Nodes; i++ {
		names = append(names, "kubelet-"+NodeName(i), "proxy-"+NodeName(i))
	}
	for _, name := range names {
		kubeconfig, err := c.kubeconfig(name)
		if err != nil {
			return fmt.Errorf("make the kubeconfig of %s: %w", name, err)
		}
		data, err := clientcmd.Write(*kubeconfig)
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", name, err)
		}
		if err := writeFile(c.layout().kubeconfig(name), data); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

// administrator is the identity of the cluster's user.
const administrator = "admin"

// kubeconfig returns the configuration with which the identity called name reaches the API server: by loopback for the
// administrator, who is on the host and may keep the file longer than the cluster lasts.
func (c Config) kubeconfig(name string) (*clientcmdapi.Config, error) {
	l := c.layout()
	var data [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		b, err := os.ReadFile(l.pki(file))
		if err != nil {
			return nil, err
		}
		data[i] = b
	}
	server := c.Server()
	if name == administrator {
		server = c.LocalServer()
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[c.Context] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: data[0]}
	k.AuthInfos[c.Context] = &clientcmdapi.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	k.Contexts[c.Context] = &clientcmdapi.Context{Cluster: c.Context, AuthInfo: c.Context}
	k.CurrentContext = c.Context
	return k, nil
}

// ownerExtension is the extension of a context in a user's kubeconfig that names the data directory of the cluster it is for.
const ownerExtension = "bonsai-data-dir"

// exportContext writes the administrator's context into the user's kubeconfig ($KUBECONFIG's first file or ~/.kube/config)
// and makes it the current one, as kind does.
func (c Config) exportContext() error {
	admin, err := c.kubeconfig(administrator)
	if err != nil {
		return err
	}
	owner, err := json.Marshal(c.DataDir)
	if err != nil {
		return err
	}
	admin.Contexts[c.Context].Extensions = map[string]runtime.Object{ownerExtension: &runtime.Unknown{Raw: owner, ContentType: runtime.ContentTypeJSON}}
	return changeUserKubeconfig(func(k *clientcmdapi.Config) {
		k.Clusters[c.Context] = admin.Clusters[c.Context]
		k.AuthInfos[c.Context] = admin.AuthInfos[c.Context]
		k.Contexts[c.Context] = admin.Contexts[c.Context]
		k.CurrentContext = c.Context
	})
}

// removeContext undoes exportContext, unless the context has become another cluster's.
func (c Config) removeContext() error {
	return changeUserKubeconfig(func(k *clientcmdapi.Config) {
		if !c.ownsContext(k.Contexts[c.Context]) {
			return
		}
		delete(k.Clusters, c.Context)
		delete(k.AuthInfos, c.Context)
		delete(k.Contexts, c.Context)
		if k.CurrentContext == c.Context {
			k.CurrentContext = ""
		}
	})
}

// ownsContext tells whether a context of the user's kubeconfig is this cluster's.
func (c Config) ownsContext(context *clientcmdapi.Context) bool {
	if context == nil {
		return false
	}
	owner, ok := context.Extensions[ownerExtension].(*runtime.Unknown)
	if !ok {
		return false
	}
	var dataDir string
	return json.Unmarshal(owner.Raw, &dataDir) == nil && dataDir == c.DataDir
}

// changeUserKubeconfig applies change to the file under client-go's lock file, and writes it only if it changed. A file that
// would be left with nothing in it is removed.
func changeUserKubeconfig(change func(*clientcmdapi.Config)) error {
	path := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	k, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		k, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	before, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	change(k)
	after, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	if string(before) == string(after) {
		return nil
	}
	if len(k.Clusters)+len(k.AuthInfos)+len(k.Contexts) == 0 {
		return ignoreMissing(os.Remove(path))
	}
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
