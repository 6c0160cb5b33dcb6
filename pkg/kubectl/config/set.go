package config

import (
	"fmt"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// said tells whether the user gave the flag, so that others stay as they are. Global flags (--cluster, --server, …) count.
func said(cmd *cobra.Command, flag string, into *string) {
	if f := cmd.Flag(flag); f != nil && f.Changed {
		*into = f.Value.String()
	}
}

func (c *command) setContext() *cobra.Command {
	var current bool
	cmd := &cobra.Command{Use: "set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace]", Short: "Set a context entry in kubeconfig", RunE: func(cmd *cobra.Command, args []string) error {
		var name, done string
		err := c.change(func(k *clientcmdapi.Config) error {
			switch {
			case current && len(args) == 0 && k.CurrentContext == "":
				return fmt.Errorf("no current context is set")
			case current && len(args) == 0:
				name = k.CurrentContext
			case !current && len(args) == 1:
				name = args[0]
			default:
				return fmt.Errorf("you must specify one of NAME or --current")
			}
			x, done2 := k.Contexts[name], "modified"
			if x == nil {
				x, done2 = clientcmdapi.NewContext(), "created"
			}
			done = done2
			said(cmd, "cluster", &x.Cluster)
			said(cmd, "user", &x.AuthInfo)
			said(cmd, "namespace", &x.Namespace)
			k.Contexts[name] = x
			return nil
		})
		if err == nil {
			fmt.Fprintf(c.Out, "Context %q %s.\n", name, done)
		}
		return err
	}}
	cmd.Flags().BoolVar(&current, "current", false, "Modify the current context")
	return cmd
}

func (c *command) setCluster() *cobra.Command {
	var embed bool
	cmd := &cobra.Command{Use: "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com]", Short: "Set a cluster entry in kubeconfig", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		err := c.change(func(k *clientcmdapi.Config) error {
			x := k.Clusters[args[0]]
			if x == nil {
				x = clientcmdapi.NewCluster()
			}
			said(cmd, "server", &x.Server)
			said(cmd, "tls-server-name", &x.TLSServerName)
			if f := cmd.Flag("insecure-skip-tls-verify"); f != nil && f.Changed {
				x.InsecureSkipTLSVerify = f.Value.String() == "true"
			}
			said(cmd, "certificate-authority", &x.CertificateAuthority)
			k.Clusters[args[0]] = x
			return embedFile(embed, &x.CertificateAuthority, &x.CertificateAuthorityData)
		})
		if err == nil {
			fmt.Fprintf(c.Out, "Cluster %q set.\n", args[0])
		}
		return err
	}}
	cmd.Flags().BoolVar(&embed, "embed-certs", false, "embed-certs for the cluster entry in kubeconfig")
	return cmd
}

func (c *command) setCredentials() *cobra.Command {
	var embed bool
	cmd := &cobra.Command{Use: "set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password]", Short: "Set a user entry in kubeconfig", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		err := c.change(func(k *clientcmdapi.Config) error {
			x := k.AuthInfos[args[0]]
			if x == nil {
				x = clientcmdapi.NewAuthInfo()
			}
			said(cmd, "token", &x.Token)
			said(cmd, "username", &x.Username)
			said(cmd, "password", &x.Password)
			said(cmd, "client-certificate", &x.ClientCertificate)
			said(cmd, "client-key", &x.ClientKey)
			k.AuthInfos[args[0]] = x
			if err := embedFile(embed, &x.ClientCertificate, &x.ClientCertificateData); err != nil {
				return err
			}
			return embedFile(embed, &x.ClientKey, &x.ClientKeyData)
		})
		if err == nil {
			fmt.Fprintf(c.Out, "User %q set.\n", args[0])
		}
		return err
	}}
	cmd.Flags().BoolVar(&embed, "embed-certs", false, "Embed client cert/key for the user entry in kubeconfig")
	return cmd
}

// embedFile puts the file's bytes in the place of its path.
func embedFile(embed bool, path *string, data *[]byte) error {
	if !embed || *path == "" {
		return nil
	}
	content, err := embedded(*path)
	if err != nil {
		return err
	}
	*path, *data = "", content
	return nil
}
