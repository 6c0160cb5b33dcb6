// Package kustomize is "kubectl kustomize": it prints what a kustomization builds to.
package kustomize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/kustomization"
)

const example = `  # Print what the kustomization of this directory builds to
  kubectl kustomize

  # Print what another directory builds to
  kubectl kustomize overlays/production

  # Write each object to a file of its own in the directory out
  kubectl kustomize -o out overlays/production`

// Options is one run of "kubectl kustomize".
type Options struct {
	cli.IOStreams
	dir, output             string
	loadRestrictor, reorder string
	reorderSaid             bool
	plugins, managedBy      bool
	helm                    types.HelmConfig
	functions               types.FnPluginLoadingOptions
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:     "kustomize DIR [flags]",
		Short:   "Build a kustomization target from a directory or URL",
		Long:    "Print the objects that a kustomization builds to.\n\n DIR is a directory with a kustomization.yaml file, or the URL of a git repository with the path of such a directory in it. Without it, it is the current directory.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *Options) addFlags(set *pflag.FlagSet) {
	set.StringVarP(&o.output, "output", "o", "", "If specified, write output to this path.")
	set.BoolVar(&o.functions.Network, "network", false, "enable network access for functions that declare it")
	set.StringVar(&o.functions.NetworkName, "network-name", "bridge", "the docker network to run the container in")
	set.StringArrayVar(&o.functions.Mounts, "mount", []string{}, "a list of storage options read from the filesystem")
	set.StringArrayVarP(&o.functions.Env, "env", "e", []string{},
		"a list of environment variables to be used by functions")
	set.BoolVar(&o.functions.AsCurrentUser, "as-current-user", false,
		"use the uid and gid of the command executor to run the function in the container")
	set.StringVar(&o.loadRestrictor, "load-restrictor", types.LoadRestrictionsRootOnly.String(),
		"if set to 'LoadRestrictionsNone', local kustomizations may load files from outside their root. This does, however, break the relocatability of the kustomization.")
	set.BoolVar(&o.plugins, "enable-alpha-plugins", false, "enable kustomize plugins")
	set.StringVar(&o.reorder, "reorder", string(krusty.ReorderOptionLegacy),
		"Reorder the resources just before output: 'legacy' or 'none'.")
	set.BoolVar(&o.managedBy, "enable-managedby-label", false, "enable adding "+konfig.ManagedbyLabelKey)
	set.BoolVar(&o.helm.Enabled, "enable-helm", false, "Enable use of the Helm chart inflator generator.")
	set.StringVar(&o.helm.Command, "helm-command", "helm", "helm command (path to executable)")
	set.StringArrayVar(&o.helm.ApiVersions, "helm-api-versions", []string{},
		"Kubernetes api versions used by Helm for Capabilities.APIVersions")
	set.StringVar(&o.helm.KubeVersion, "helm-kube-version", "",
		"Kubernetes version used by Helm for Capabilities.KubeVersion")
	set.BoolVar(&o.helm.Debug, "helm-debug", false, "Enable debug output from the Helm chart inflator generator.")
	// The flags were added above.
	_ = set.MarkDeprecated("reorder", "use the new 'sortOptions' field in kustomization.yaml instead.")
	_ = set.MarkDeprecated("enable-managedby-label",
		"The flag `enable-managedby-label` has been deprecated. Use the `managedByLabel` option in the `buildMetadata` field instead.")
}

// Complete takes the directory.
func (o *Options) Complete(_ *cli.Factory, cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		o.dir = "."
	case 1:
		o.dir = args[0]
	default:
		return errors.New("specify one path to " + konfig.DefaultKustomizationFileName())
	}
	o.reorderSaid = cmd.Flags().Changed("reorder")
	o.managedBy = o.managedBy || os.Getenv(konfig.EnableManagedbyLabelEnv) == "on"
	return nil
}

// Validate judges the values of flags.
func (o *Options) Validate() error {
	if err := oneOf("load-restrictor", o.loadRestrictor, types.LoadRestrictionsRootOnly.String(),
		types.LoadRestrictionsNone.String()); o.loadRestrictor != "" && err != nil {
		return err
	}
	return oneOf("reorder", o.reorder, string(krusty.ReorderOptionLegacy), string(krusty.ReorderOptionNone))
}

func oneOf(flag, value string, legal ...string) error {
	for _, l := range legal {
		if value == l {
			return nil
		}
	}
	return fmt.Errorf("illegal flag value --%s %s; legal values: %v", flag, value, legal)
}

// options are the flags in kustomize's words.
func (o *Options) options() *krusty.Options {
	k := krusty.MakeDefaultOptions()
	k.Reorder = krusty.ReorderOptionUnspecified
	if o.reorderSaid {
		k.Reorder = krusty.ReorderOption(o.reorder)
	}
	if o.loadRestrictor == types.LoadRestrictionsNone.String() {
		k.LoadRestrictions = types.LoadRestrictionsNone
	}
	k.AddManagedbyLabel = o.managedBy
	helm := o.helm
	if o.plugins {
		k.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
		k.PluginConfig.FnpLoadingOptions = o.functions
		helm.Enabled = true
	}
	k.PluginConfig.HelmConfig = helm
	return k
}

// Run builds and prints.
func (o *Options) Run(context.Context) error {
	m, err := kustomization.Build(o.dir, o.options())
	if err != nil {
		return err
	}
	if info, err := os.Stat(o.output); o.output != "" && err == nil && info.IsDir() {
		return o.writeEach(m)
	}
	data, err := m.AsYaml()
	if err != nil {
		return err
	}
	if o.output != "" {
		return os.WriteFile(o.output, data, 0o666)
	}
	_, err = o.Raw().Out.Write(data)
	return err
}

// writeEach writes each object to a file of its own in the directory of -o, called by its namespace (where there are
// several), group, version, kind and name.
func (o *Options) writeEach(m resmap.ResMap) error {
	byNamespace := m.GroupedByCurrentNamespace()
	for ns, resources := range byNamespace {
		prefix := ""
		if len(byNamespace) > 1 {
			prefix = ns + "_"
		}
		for _, r := range resources {
			if err := o.write(prefix, r); err != nil {
				return err
			}
		}
	}
	for _, r := range m.ClusterScoped() {
		if err := o.write("", r); err != nil {
			return err
		}
	}
	return nil
}

// write writes one object. Its name is no path: the separators in it, which those of roles may have, are dashes.
func (o *Options) write(prefix string, r *resource.Resource) error {
	data, err := r.AsYAML()
	if err != nil {
		return err
	}
	name := strings.ToLower(prefix + r.GetGvk().StringWoEmptyField() + "_" + r.GetName() + ".yaml")
	return os.WriteFile(filepath.Join(o.output, strings.ReplaceAll(name, "/", "-")), data, 0o666)
}
