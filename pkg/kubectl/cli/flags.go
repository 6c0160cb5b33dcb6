package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// globals are the values of the flags that every command takes.
type globals struct {
	kubeconfig, kuberc                    string
	cacheDir, namespace                   string
	context, cluster, user                string
	server, tlsServerName, proxyURL, ca   string
	clientCert, clientKey, token          string
	username, password                    string
	as, asUID                             string
	asGroups, asUserExtra                 []string
	insecure, matchVersion, noCompression bool
	warningsAsErrors                      bool
	timeout                               string
}

// AddFlags adds the global flags to set.
func (f *Factory) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.flags.kuberc, "kuberc", "",
		"Path to the kuberc file to use for preferences. This can be disabled by exporting KUBECTL_KUBERC=false feature gate or turning off the feature KUBERC=off.")
	f.AddClientFlags(set)
}

// AddClientFlags adds the global flags that say which server is asked, as whom and how. A plug-in takes them, too.
func (f *Factory) AddClientFlags(set *pflag.FlagSet) {
	g := &f.flags
	set.StringVar(&g.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	set.StringVar(&g.cacheDir, "cache-dir", defaultCacheDir(), "Default cache directory")
	set.StringVarP(&g.namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request")
	set.StringVar(&g.context, "context", "", "The name of the kubeconfig context to use")
	set.StringVar(&g.cluster, "cluster", "", "The name of the kubeconfig cluster to use")
	set.StringVar(&g.user, "user", "", "The name of the kubeconfig user to use")
	set.StringVarP(&g.server, "server", "s", "", "The address and port of the Kubernetes API server")
	set.StringVar(&g.proxyURL, "proxy-url", "", "Proxy URL to use for requests to the API server")
	set.StringVar(&g.tlsServerName, "tls-server-name", "",
		"Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used")
	set.StringVar(&g.ca, "certificate-authority", "", "Path to a cert file for the certificate authority")
	set.StringVar(&g.clientCert, "client-certificate", "", "Path to a client certificate file for TLS")
	set.StringVar(&g.clientKey, "client-key", "", "Path to a client key file for TLS")
	set.StringVar(&g.token, "token", "", "Bearer token for authentication to the API server")
	set.StringVar(&g.username, "username", "", "Username for basic authentication to the API server")
	set.StringVar(&g.password, "password", "", "Password for basic authentication to the API server")
	set.StringVar(&g.as, "as", "",
		"Username to impersonate for the operation. User could be a regular user or a service account in a namespace.")
	set.StringVar(&g.asUID, "as-uid", "", "UID to impersonate for the operation.")
	set.StringArrayVar(&g.asGroups, "as-group", nil,
		"Group to impersonate for the operation, this flag can be repeated to specify multiple groups.")
	set.StringArrayVar(&g.asUserExtra, "as-user-extra", nil,
		"User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	set.BoolVar(&g.insecure, "insecure-skip-tls-verify", false,
		"If true, the server's certificate will not be checked for validity. This will make your HTTPS connections insecure")
	set.BoolVar(&g.matchVersion, "match-server-version", false, "Require server version to match client version")
	set.BoolVar(&g.noCompression, "disable-compression", false,
		"If true, opt-out of response compression for all requests to the server")
	set.BoolVar(&g.warningsAsErrors, "warnings-as-errors", false,
		"Treat warnings received from the server as errors and exit with a non-zero exit code")
	set.StringVar(&g.timeout, "request-timeout", "0",
		"The length of time to wait before giving up on a single server request. Non-zero values should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
}

// Kuberc is the value of --kuberc.
func (f *Factory) Kuberc() string { return f.flags.kuberc }

func defaultCacheDir() string {
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), ".kube", "cache")
	}
	return filepath.Join(home, ".kube", "cache")
}

// overrides are the flags laid over the kubeconfig.
func (f *Factory) overrides() (*clientcmd.ConfigOverrides, error) {
	g := &f.flags
	extra, err := parseUserExtra(g.asUserExtra)
	if err != nil {
		return nil, err
	}
	o := &clientcmd.ConfigOverrides{
		ClusterDefaults: clientcmd.ClusterDefaults, // localhost, or $KUBERNETES_MASTER
		CurrentContext:  g.context,
		Timeout:         g.timeout,
		Context:         clientcmdapi.Context{Cluster: g.cluster, AuthInfo: g.user, Namespace: g.namespace},
		ClusterInfo: clientcmdapi.Cluster{
			Server: g.server, TLSServerName: g.tlsServerName, CertificateAuthority: g.ca,
			InsecureSkipTLSVerify: g.insecure, ProxyURL: g.proxyURL, DisableCompression: g.noCompression,
		},
		AuthInfo: clientcmdapi.AuthInfo{
			ClientCertificate: g.clientCert, ClientKey: g.clientKey, Token: g.token, Username: g.username,
			Password:    g.password,
			Impersonate: g.as, ImpersonateUID: g.asUID, ImpersonateGroups: g.asGroups, ImpersonateUserExtra: extra,
		},
	}
	return o, nil
}
