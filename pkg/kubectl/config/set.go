package config

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// said copies the flag's value to into if the user gave the flag; otherwise into keeps its value. Global flags
// (--cluster, --server, …) count.
func said(cmd *cobra.Command, flag string, into *string) {
	if f := cmd.Flag(flag); f != nil && f.Changed {
		*into = f.Value.String()
	}
}

func (c *command) setContext() *cobra.Command {
	var current bool
	cmd := &cobra.Command{Use: "set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace]", Example: "# Set the user of a context, and keep what else is there\nkubectl config set-context dev --user=admin\n\n# Take another namespace for the current context\nkubectl config set-context --current --namespace=team", Short: "Set a context entry in kubeconfig", RunE: func(cmd *cobra.Command, args []string) error {
		var name, done string
		switch {
		case len(args) > 1:
			return exactly(1)(cmd, args)
		case len(args) == 1 && current:
			return errors.New("you cannot specify both a context name and --current")
		case !current && (len(args) == 0 || args[0] == ""):
			return errors.New("you must specify a non-empty context name or --current")
		}
		err := c.change(func(k *clientcmdapi.Config) error {
			switch {
			case current && k.CurrentContext == "":
				return fmt.Errorf("no current context is set")
			case current:
				name = k.CurrentContext
			default:
				name = args[0]
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
	cmd.Flags().StringP("namespace", "n", "", "namespace for the context entry in kubeconfig")
	cmd.Flags().String("cluster", "", "cluster for the context entry in kubeconfig")
	cmd.Flags().String("user", "", "user for the context entry in kubeconfig")
	return cmd
}

func (c *command) setCluster() *cobra.Command {
	var embed bool
	cmd := &cobra.Command{Use: "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com]", Example: "# Set the address of a cluster, and keep what else is there\nkubectl config set-cluster dev --server=https://1.2.3.4\n\n# Write the certificate of its authority into the file\nkubectl config set-cluster dev --certificate-authority=ca.crt --embed-certs=true", Short: "Set a cluster entry in kubeconfig", Args: named("cluster"), RunE: func(cmd *cobra.Command, args []string) error {
		var insecure, ca string
		said(cmd, "insecure-skip-tls-verify", &insecure)
		said(cmd, "certificate-authority", &ca)
		if insecure == "true" && ca != "" {
			return errors.New("you cannot specify a certificate authority and insecure mode at the same time")
		}
		if err := readable(cmd, embed, "certificate-authority"); err != nil {
			return err
		}
		err := c.change(func(k *clientcmdapi.Config) error {
			x := k.Clusters[args[0]]
			if x == nil {
				x = clientcmdapi.NewCluster()
			}
			said(cmd, "server", &x.Server)
			said(cmd, "tls-server-name", &x.TLSServerName)
			said(cmd, "proxy-url", &x.ProxyURL)
			if f := cmd.Flag("insecure-skip-tls-verify"); f != nil && f.Changed {
				if x.InsecureSkipTLSVerify = f.Value.String() == "true"; x.InsecureSkipTLSVerify {
					x.CertificateAuthority, x.CertificateAuthorityData = "", nil
				}
			}
			k.Clusters[args[0]] = x
			if file(cmd, "certificate-authority", embed, &x.CertificateAuthority, &x.CertificateAuthorityData) {
				x.InsecureSkipTLSVerify = false
			}
			return nil
		})
		if err == nil {
			fmt.Fprintf(c.Out, "Cluster %q set.\n", args[0])
		}
		return err
	}}
	cmd.Flags().BoolVar(&embed, "embed-certs", false, "embed-certs for the cluster entry in kubeconfig")
	cmd.Flags().String("server", "", "server for the cluster entry in kubeconfig")
	cmd.Flags().String("tls-server-name", "", "tls-server-name for the cluster entry in kubeconfig")
	cmd.Flags().Bool("insecure-skip-tls-verify", false, "insecure-skip-tls-verify for the cluster entry in kubeconfig")
	cmd.Flags().String("certificate-authority", "",
		"Path to certificate-authority file for the cluster entry in kubeconfig")
	cmd.Flags().String("proxy-url", "", "proxy-url for the cluster entry in kubeconfig")
	return cmd
}
