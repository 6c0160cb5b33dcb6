// Package create is "kubectl create": objects from files, and generators that build common objects from flags.
package create

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// Options is one run of "kubectl create -f".
type Options struct {
	write.Base
	files    resource.Files
	selector string
	raw      string
	edit     bool
	editor   write.Editor
	session  write.EditSession
}

// NewCommand returns a function that makes the command with all its generators; editor serves --edit.
func NewCommand(editor write.Editor) func(*cli.Factory, cli.IOStreams) *cobra.Command {
	return func(f *cli.Factory, streams cli.IOStreams) *cobra.Command { return newCommand(f, streams, editor) }
}

func newCommand(f *cli.Factory, streams cli.IOStreams, editor write.Editor) *cobra.Command {
	o := &Options{editor: editor, Base: write.Base{Flags: write.NewFlags("kubectl-create"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Long:    "Create a resource from a file or from stdin.\n\n JSON and YAML formats are accepted.",
		Example: "  # Create a pod using the data in pod.json\n  kubectl create -f ./pod.json\n\n  # Create a pod based on the JSON passed into stdin\n  cat pod.json | kubectl create -f -",
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	o.AddSaveConfig(set)
	o.AddRecord(cmd)
	o.files.AddFlags(set, "Filename, directory, or URL to files to use to create the resource")
	set.StringVarP(&o.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.StringVar(&o.raw, "raw", "",
		"Raw URI to POST to the server.  Uses the transport specified by the kubeconfig file.")
	set.BoolVar(&o.edit, "edit", false, "Edit the API resource before creating")
	o.session.AddWindows(set, "Only relevant if --edit=true. Defaults to the line ending native to your platform.")
	for _, k := range kinds() {
		cmd.AddCommand(newGenerator(f, streams, k))
	}
	cmd.AddCommand(newService(f, streams), newSecret(f, streams), newToken(f, streams))
	return cmd
}

// Complete checks the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	if o.files.Empty() {
		if len(args) > 0 {
			return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
		}
		return write.NoFiles()
	}
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
	}
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *Options) Validate() error {
	if err := write.Raw(o.raw).Validate(o.Flags, o.files,
		map[string]bool{"--selector (-l)": o.selector != "", "--edit": o.edit}); err != nil {
		return err
	}
	_, err := o.Printer("created")
	return err
}

// Run creates the objects of the files, one after the other. If one is refused, it continues with the next.
func (o *Options) Run(ctx context.Context) error {
	if o.raw != "" {
		return write.Raw(o.raw).Send(ctx, &o.Base, http.MethodPost, o.files)
	}
	o.files.Check = o.Checks()
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit, LabelSelector: o.selector,
	})
	p, e := o.Printer("created")
	if e != nil {
		return e
	}
	if len(infos) == 0 && err == nil {
		return errors.New("no objects passed to create")
	}
	if o.edit && err == nil {
		return o.createEdited(ctx, infos)
	}
	return resource.Each(infos, err, func(i *resource.Info) error {
		if err := o.create(ctx, i); err != nil {
			return err
		}
		return p.Print(i.Object, o.Out)
	})
}

// createEdited serves --edit: it creates the objects as the user has edited them.
func (o *Options) createEdited(ctx context.Context, infos []*resource.Info) error {
	s := o.session
	s.What, s.Unchecked = fmt.Sprintf("%s %q", infos[0].Mapping.Resource.GroupResource(), infos[0].Name), !o.Checks()
	for _, i := range infos {
		s.Objects = append(s.Objects, i.Object)
	}
	return o.editor(ctx, o.IOStreams, s, func(edited *unstructured.Unstructured) error {
		made, err := o.Post(ctx, edited)
		if err != nil {
			return err
		}
		return o.Show("created", made)
	})
}

// create creates one object. The annotation with the last applied configuration is set with --save-config; otherwise
// one that the file has is updated, so that a later apply does not compare with an older state.
func (o *Options) create(ctx context.Context, i *resource.Info) error {
	if err := o.Record(i.Object); err != nil {
		return write.WithSource("creating", i.Source, err)
	}
	if o.SaveConfig {
		if err := write.SetLastApplied(i.Object); err != nil {
			return write.WithSource("creating", i.Source, err)
		}
	} else if err := o.UpdateLastApplied(i.Object); err != nil {
		return write.WithSource("creating", i.Source, err)
	}
	if o.DryRun == write.DryRunClient {
		return nil
	}
	return write.WithSource("creating", i.Source, i.Create(ctx, o.CreateOptions()))
}
