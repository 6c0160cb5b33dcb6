package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// editLast is "apply edit-last-applied".
type editLast struct {
	write.Base
	target  write.Target
	args    []string
	editor  write.Editor
	session write.EditSession
}

func newEditLast(f *cli.Factory, streams cli.IOStreams, editor write.Editor) *cobra.Command {
	o := &editLast{Base: write.Base{Flags: write.NewFlags("kubectl-client-side-apply"), IOStreams: streams},
		editor: editor}
	cmd := &cobra.Command{
		Use:     "edit-last-applied (RESOURCE/NAME | -f FILENAME)",
		Example: "# Edit what was last applied to a deployment, in YAML\nkubectl apply edit-last-applied deployment/web\n\n# The same in JSON, of the objects of a file\nkubectl apply edit-last-applied -f web.yaml -o json",
		Short:   "Edit latest last-applied-configuration annotations of a resource/object",
		Long:    "Edit the latest last-applied-configuration annotations of resources from the default editor.",
		RunE:    cli.RunE(f, o),
	}
	o.Print.AddFlags(cmd.Flags())
	o.AddManager(cmd.Flags())
	o.AddValidate(cmd.Flags())
	o.session.AddWindows(cmd.Flags(), "Defaults to the line ending native to your platform.")
	o.target.Files.AddFlags(cmd.Flags(), "Filename, directory, or URL to files to use to edit the resource")
	return cmd
}

// Complete gets the client.
func (o *editLast) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *editLast) Validate() error {
	_, err := o.Printer("edited")
	return err
}

// Run edits the configurations one after the other.
func (o *editLast) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx, o.target.Request(&o.Base, o.args))
	if err != nil {
		return err
	}
	for _, i := range infos {
		if err := o.edit(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (o *editLast) edit(ctx context.Context, i *resource.Info) error {
	kept, err := write.LastApplied(i.Object)
	if err != nil {
		return err
	}
	if kept == nil {
		return fmt.Errorf("no last-applied-configuration annotation found on resource: %s", i.Name)
	}
	last := &unstructured.Unstructured{}
	if err := last.UnmarshalJSON(kept); err != nil {
		return fmt.Errorf("decode the configuration kept in %s: %w", i.ResourceName(), err)
	}
	s := o.session
	s.What, s.Objects, s.Unchecked = fmt.Sprintf("%s %q", i.Mapping.Resource.GroupResource(), i.Name),
		[]*unstructured.Unstructured{last}, !o.Checks()
	return o.editor(ctx, o.IOStreams, s, func(edited *unstructured.Unstructured) error {
		return o.save(ctx, i, last, edited)
	})
}

// save keeps edited as the configuration of the object.
func (o *editLast) save(ctx context.Context, i *resource.Info, last, edited *unstructured.Unstructured) error {
	if edited.GetName() != i.Name || edited.GetKind() != last.GetKind() {
		return errors.New("At least one of apiVersion, kind and name was changed")
	}
	configuration, err := write.Configuration(edited)
	if err != nil {
		return err
	}
	patch, err := annotationPatch(configuration)
	if err != nil {
		return err
	}
	if err := i.Patch(ctx, types.MergePatchType, patch, o.PatchOptions()); err != nil {
		return err
	}
	return o.Show("edited", i.Object)
}
