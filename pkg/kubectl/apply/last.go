package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
	"bonsai/pkg/plainjson"
)

// viewLast is "apply view-last-applied".
type viewLast struct {
	write.Base
	target write.Target
	args   []string
	output string
}

func newViewLast(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &viewLast{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
		Example: "# What was last applied to a deployment, in YAML\nkubectl apply view-last-applied deployment/web\n\n# The same in JSON, of the objects of a file\nkubectl apply view-last-applied -f web.yaml -o json",
		Short:   "View the latest last-applied-configuration annotations of a resource/object",
		Long:    "View the latest last-applied-configuration annotations by type/name or file.\n\n The default output will be printed to stdout in YAML format.",
		RunE:    cli.RunE(f, o),
	}
	o.target.AddFlags(cmd.Flags(),
		"Filename, directory, or URL to files that contains the last-applied-configuration annotations")
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "Output format. Must be one of (yaml, json)")
	return cmd
}

// Complete gets the client.
func (o *viewLast) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	if o.output != "yaml" && o.output != "json" {
		return cli.UsageErrorf(cmd, "Unexpected -o output mode: %s, the flag 'output' must be one of yaml|json",
			o.output)
	}
	o.args = args
	return o.CompleteWith(f)
}

// Validate has nothing to judge.
func (o *viewLast) Validate() error { return nil }

// Run prints the configuration of each object.
func (o *viewLast) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx, o.target.Request(&o.Base, o.args))
	for _, i := range infos {
		kept, e := write.LastApplied(i.Object)
		if e != nil {
			return e
		}
		if kept == nil {
			continue
		}
		if e := o.show(kept); e != nil {
			return fmt.Errorf("show the configuration of %s: %w", i.ResourceName(), e)
		}
	}
	return err
}

func (o *viewLast) show(kept []byte) error {
	if o.output == "json" {
		var content any
		if err := json.Unmarshal(kept, &content); err != nil {
			return err
		}
		data, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Raw().Out, "%s\n", plainjson.Escape(data))
		return err
	}
	data, err := yaml.JSONToYAML(plainjson.Escape(kept))
	if err != nil {
		return err
	}
	_, err = o.Raw().Out.Write(data)
	return err
}

// setLast is "apply set-last-applied".
type setLast struct {
	write.Base
	files  resource.Files
	create bool
}

func newSetLast(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &setLast{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "set-last-applied -f FILENAME",
		Example: "# Take a file for what was last applied to its objects\nkubectl apply set-last-applied -f web.yaml\n\n# The same for objects that were never applied\nkubectl apply set-last-applied -f web.yaml --create-annotation=true",
		Short:   "Set the last-applied-configuration annotation on a live object to match the contents of a file",
		Long:    "Set the latest last-applied-configuration annotations by setting it to match the contents of a file. This results in the last-applied-configuration being updated as though 'kubectl apply -f <file>' was run, without updating any other parts of the object.",
		RunE:    cli.RunE(f, o),
	}
	o.Flags.AddFlags(cmd.Flags())
	o.files.AddFlags(cmd.Flags(),
		"Filename, directory, or URL to files that contains the last-applied-configuration annotations")
	cmd.Flags().BoolVar(&o.create, "create-annotation", false,
		"Will create 'last-applied-configuration' annotations if current objects doesn't have one")
	return cmd
}

// Complete gets the client.
func (o *setLast) Complete(f *cli.Factory, _ *cobra.Command, _ []string) error {
	if o.files.Empty() {
		return resource.ErrNoResource
	}
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *setLast) Validate() error {
	_, err := o.Printer("configured")
	return err
}

// Run sets the annotation of each object to what its file holds.
func (o *setLast) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx,
		resource.Request{Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit})
	if err != nil {
		return err
	}
	for _, i := range infos {
		if err := o.set(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (o *setLast) set(ctx context.Context, i *resource.Info) error {
	want, err := bare(i.Object)
	if err != nil {
		return err
	}
	if err := i.Get(ctx); err != nil {
		return err
	}
	kept, err := write.LastApplied(i.Object)
	if err != nil {
		return err
	}
	if kept == nil && !o.create {
		return fmt.Errorf("no last-applied-configuration annotation found on resource: %s, to create the annotation, run the command with --create-annotation", i.Name)
	}
	if string(kept) == string(want) {
		fmt.Fprintf(o.Out, "set-last-applied %s: no changes required.\n", i.Name)
		return nil
	}
	if o.DryRun != write.DryRunClient {
		patch, err := annotationPatch(want)
		if err != nil {
			return err
		}
		if err := i.Patch(ctx, types.MergePatchType, patch, o.PatchOptions()); err != nil {
			return err
		}
	}
	return o.Show("configured", i.Object)
}

// bare is the configuration that an object of a file asks for, without annotations if it has none.
func bare(u *unstructured.Unstructured) ([]byte, error) {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", write.LastAppliedAnnotation)
	data, err := resource.Encode(u)
	return append(bytes.TrimSpace(data), '\n'), err
}

// annotationPatch is the merge patch that keeps configuration in the annotation.
func annotationPatch(configuration []byte) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{write.LastAppliedAnnotation: string(configuration)}}})
}
