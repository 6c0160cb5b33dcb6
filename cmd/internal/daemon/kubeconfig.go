package daemon

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/api/kubeversion"
	"bonsai/pkg/safetext"
)

// Client is the connection of the kubeconfig file at path, which flag names: Kubeconfig and Connect.
func Client(flag, path, master, component string) (*rest.Config, error) {
	config, err := Kubeconfig(flag, path, master, component)
	if err != nil {
		return nil, err
	}
	return Connect(config)
}

// Kubeconfig reads the kubeconfig file at path (its current context), which flag names, into a REST configuration that
// speaks protobuf, names the component as its user agent and sets no request limits: the API server protects itself.
// The server is that of the file, or master's address if that is not empty.
func Kubeconfig(flag, path, master, component string) (*rest.Config, error) {
	if path == "" {
		return nil, fmt.Errorf("%s is required", flag)
	}
	config, err := clientcmd.BuildConfigFromFlags(master, path)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", flag, path, safetext.URLError(err))
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = component + "/" + kubeversion.Release
	config.QPS = -1
	return config, nil
}
