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

// Editor lets the user change an object in an editor and returns what became of it, nil if nothing did; commands.go gives
// the one of "kubectl edit".
type Editor func(ctx context.Context, streams cli.IOStreams, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)

// editLast is "apply edit-last-applied".
type editLast struct {
	write.Base
	target write.Target
	args   []string
	editor Editor
}

func newEditLast(f *cli.Factory, streams cli.IOStreams, editor Editor) *cobra.Command {
	o := &editLast{Base: write.Base{Flags: write.NewFlags("kubectl-client-side-apply"), IOStreams: streams}, editor: editor}
	cmd := &cobra.Command{
		Use:   "edit-last-applied (RESOURCE/NAME | -f FILENAME)",
		Short: "Edit latest last-applied-configuration annotations of a resource/object",
		Long:  "Edit the latest last-applied-configuration annotations of resources from the default editor.",
		RunE:  cli.RunE(f, o),
	}
	o.Print.AddFlags(cmd.Flags())
	o.AddManager(cmd.Flags())
	o.AddValidate(cmd.Flags())
	o.target.AddFlags(cmd.Flags(), "Filename, directory, or URL to files to use to edit the resource")
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
	edited, err := o.editor(ctx, o.IOStreams, last)
	if err != nil {
		return err
	}
	if edited == nil {
		return nil // which the editor has said
	}
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
