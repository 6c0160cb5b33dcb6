// Package config reads and changes kubeconfig files.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

// command is what the subcommands share.
type command struct {
	cli.IOStreams
	f *cli.Factory
}

// NewCommand returns "kubectl config".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	c := &command{streams, f}
	cmd := &cobra.Command{
		Use:   "config SUBCOMMAND",
		Short: "Modify kubeconfig files",
		Long:  "Modify kubeconfig files using subcommands like \"kubectl config set current-context my-context\".\n\n The loading order follows these rules: the --kubeconfig flag, then $KUBECONFIG (a list of paths that are merged), then ${HOME}/.kube/config.",
		RunE:  cli.Group,
	}
	cmd.AddCommand(c.view(), c.set(), c.unset(), c.getContexts(), c.currentContext(), c.useContext(), c.rename(),
		c.setContext(), c.setCluster(), c.setCredentials())
	cmd.AddCommand(c.names("get-clusters", "Display clusters defined in the kubeconfig",
		func(k *clientcmdapi.Config) []string {
			return sorted(k.Clusters)
		}))
	cmd.AddCommand(c.names("get-users", "Display users defined in the kubeconfig",
		func(k *clientcmdapi.Config) []string {
			return sorted(k.AuthInfos)
		}))
	cmd.AddCommand(
		c.remove("delete-context", "context", func(k *clientcmdapi.Config, n string) bool {
			return drop(k.Contexts, n)
		}),
		c.remove("delete-cluster", "cluster", func(k *clientcmdapi.Config, n string) bool {
			return drop(k.Clusters, n)
		}),
		c.remove("delete-user", "user", func(k *clientcmdapi.Config, n string) bool { return drop(k.AuthInfos, n) }),
	)
	return cmd
}

// sorted returns the names of m in alphabetical order.
func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// drop removes an entry and reports whether it existed.
func drop[V any](m map[string]V, name string) bool {
	_, ok := m[name]
	delete(m, name)
	return ok
}

// load reads the merged kubeconfig of all files that the loading rules name.
func (c *command) load() (*clientcmdapi.Config, error) { return c.f.LoadingRules().GetStartingConfig() }

// change loads the kubeconfig, calls edit and writes the result: each entry to the file that it came from. Relative
// paths of files stay relative. Nothing is written if edit fails.
func (c *command) change(edit func(*clientcmdapi.Config) error) error {
	k, err := c.load()
	if err != nil {
		return err
	}
	if err := edit(k); err != nil {
		return err
	}
	return clientcmd.ModifyConfig(c.f.LoadingRules(), *k, true)
}

// exactly requires n arguments; otherwise it prints the command's help.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			_ = cmd.Help()
			return fmt.Errorf("Unexpected args: %v", args)
		}
		return nil
	}
}

// named requires one argument, the name of a cluster, user or context. It must not be empty, as when a shell variable
// is unset.
func named(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := exactly(1)(cmd, args); err != nil {
			return err
		}
		if args[0] == "" {
			return fmt.Errorf("you must specify a non-empty %s name", what)
		}
		return nil
	}
}

func (c *command) view() *cobra.Command {
	var raw, minify, flatten, merge bool
	p := printers.NewFlags()
	p.Output = "yaml"
	cmd := &cobra.Command{
		Use: "view [flags]", Example: "# The merged kubeconfig, without secrets\nkubectl config view\n\n# All of it, with secrets\nkubectl config view --raw\n\n# The address of the current cluster\nkubectl config view --minify -o jsonpath={.clusters[0].cluster.server}", Short: "Display merged kubeconfig settings or a specified kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UsageErrorf(cmd, "unexpected arguments: %v", args)
			}
			rules := c.f.LoadingRules()
			if !merge && rules.ExplicitPath == "" {
				return errors.New("if merge==false a precise file must be specified")
			}
			rules.DoNotResolvePaths = true // paths are shown as they are written
			k, err := rules.Load()
			if merge && errors.Is(err, fs.ErrNotExist) {
				k, err = clientcmdapi.NewConfig(), nil // nothing was configured yet
			}
			if err != nil {
				return err
			}
			said(cmd, "context", &k.CurrentContext)
			if minify {
				if err := clientcmdapi.MinifyConfig(k); err != nil {
					return err
				}
			}
			switch {
			case flatten:
				err = clientcmdapi.FlattenConfig(k)
			case !raw:
				err = hide(k)
			}
			if err != nil {
				return err
			}
			return c.show(k, p)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "Display raw byte data and sensitive data")
	cmd.Flags().BoolVar(&merge, "merge", true, "Merge the full hierarchy of kubeconfig files")
	cmd.Flags().BoolVar(&minify, "minify", false, "Remove all information not used by current-context from the output")
	cmd.Flags().BoolVar(&flatten, "flatten", false,
		"Flatten the resulting kubeconfig file into self-contained output (useful for creating portable kubeconfig files)")
	p.AddFlags(cmd.Flags())
	return cmd
}

// hide replaces secrets and long data in k: tokens and passwords by REDACTED, certificates and keys by DATA+OMITTED.
func hide(k *clientcmdapi.Config) error {
	if err := clientcmdapi.RedactSecrets(k); err != nil {
		return err
	}
	clientcmdapi.ShortenConfig(k) // last: it has its own words for keys
	return nil
}

// show prints k as a file has it, with the names and the version of the file format.
func (c *command) show(k *clientcmdapi.Config, flags *printers.Flags) error {
	p, err := flags.Printer("")
	if err != nil {
		return err
	}
	object, err := latest.Scheme.ConvertToVersion(k, latest.ExternalVersion)
	if err != nil {
		return err
	}
	return p.Print(object, c.Out)
}

func (c *command) getContexts() *cobra.Command {
	var noHeaders bool
	var output string
	cmd := &cobra.Command{
		Use:     "get-contexts [(-o|--output=)name)]",
		Example: "# All contexts\nkubectl config get-contexts\n\n# One of them\nkubectl config get-contexts dev",
		Short:   "Describe one or many contexts",
		RunE: func(_ *cobra.Command, args []string) error {
			if output != "" && output != "name" {
				return fmt.Errorf("--output %v is not available in kubectl config get-contexts; resetting to default output format", output)
			}
			k, err := c.load()
			if err != nil {
				return err
			}
			names := args
			if len(names) == 0 {
				names = sorted(k.Contexts)
			}
			return c.contexts(k, names, output == "name", noHeaders)
		},
	}
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false,
		"When using the default or custom-column output format, don't print headers (default print headers).")
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format. One of: (name).")
	return cmd
}

func (c *command) contexts(k *clientcmdapi.Config, names []string, nameOnly, noHeaders bool) error {
	out := printers.NewAligner(c.Out)
	if !nameOnly && !noHeaders {
		out.Row("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")
	}
	for _, n := range names {
		x, ok := k.Contexts[n]
		if !ok {
			return errors.Join(out.Flush(), fmt.Errorf("context %v not found", n))
		}
		if nameOnly {
			out.Row(n)
			continue
		}
		mark := ""
		if n == k.CurrentContext {
			mark = "*"
		}
		out.Row(mark, n, x.Cluster, x.AuthInfo, x.Namespace)
	}
	return out.Flush()
}

func (c *command) currentContext() *cobra.Command {
	return &cobra.Command{Use: "current-context",
		Example: "# The name of the current context\nkubectl config current-context",
		Short:   "Display the current-context", RunE: func(*cobra.Command, []string) error {
			k, err := c.load()
			if err != nil {
				return err
			}
			if k.CurrentContext == "" {
				return errors.New("current-context is not set")
			}
			fmt.Fprintln(c.Out, k.CurrentContext)
			return nil
		}}
}

func (c *command) useContext() *cobra.Command {
	return &cobra.Command{Use: "use-context CONTEXT_NAME",
		Example: "# Work with another cluster from now on\nkubectl config use-context dev", Aliases: []string{"use"},
		Short: "Set the current-context in a kubeconfig file", Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := c.change(func(k *clientcmdapi.Config) error {
				if args[0] == "" {
					return errors.New("empty context names are not allowed")
				}
				if k.Contexts[args[0]] == nil {
					return fmt.Errorf("no context exists with the name: %q", args[0])
				}
				k.CurrentContext = args[0]
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.Out, "Switched to context %q.\n", args[0])
			}
			return err
		}}
}

func (c *command) rename() *cobra.Command {
	return &cobra.Command{Use: "rename-context CONTEXT_NAME NEW_NAME",
		Example: "# Give a context another name\nkubectl config rename-context old new",
		Short:   "Rename a context from the kubeconfig file", Args: exactly(2),
		RunE: func(_ *cobra.Command, args []string) error {
			err := c.change(func(k *clientcmdapi.Config) error {
				x := k.Contexts[args[0]]
				if x == nil {
					return fmt.Errorf("cannot rename the context %q, it's not in %s", args[0],
						c.f.LoadingRules().GetDefaultFilename())
				}
				if k.Contexts[args[1]] != nil {
					return fmt.Errorf("cannot rename the context %q, the context %q already exists in %s", args[0],
						args[1],
						c.f.LoadingRules().GetDefaultFilename())
				}
				k.Contexts[args[1]] = x
				delete(k.Contexts, args[0])
				if k.CurrentContext == args[0] {
					k.CurrentContext = args[1]
				}
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.Out, "Context %q renamed to %q.\n", args[0], args[1])
			}
			return err
		}}
}

func (c *command) names(use, short string, list func(*clientcmdapi.Config) []string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: fmt.Sprintf("# %s\nkubectl config %s", short, use),
		RunE: func(*cobra.Command, []string) error {
			k, err := c.load()
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, "NAME")
			for _, n := range list(k) {
				fmt.Fprintln(c.Out, n)
			}
			return nil
		}}
}

func (c *command) remove(use, what string, drop func(*clientcmdapi.Config, string) bool) *cobra.Command {
	return &cobra.Command{Use: use + " NAME", Short: "Delete the specified " + what + " from the kubeconfig",
		Example: fmt.Sprintf("# Forget a %s\nkubectl config %s dev", what, use), Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := c.f.LoadingRules().GetDefaultFilename()
			err := c.change(func(k *clientcmdapi.Config) error {
				if what == "context" && k.CurrentContext == args[0] {
					fmt.Fprint(c.ErrOut, "warning: this removed your active context, use \"kubectl config use-context\" to select a different one\n")
				}
				if !drop(k, args[0]) {
					return fmt.Errorf("cannot delete %s %s, not in %s", what, args[0], file)
				}
				return nil
			})
			if err == nil {
				fmt.Fprintf(c.Out, "deleted %s %s from %s\n", what, args[0], file)
			}
			return err
		}}
}
