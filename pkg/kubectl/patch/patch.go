// Package patch is "kubectl patch": it changes fields of objects by a JSON, merge or strategic merge patch.
package patch

import (
	"context"
	"errors"
	"fmt"
	"os"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Partially update a node using a strategic merge patch, specifying the patch as JSON
  kubectl patch node k8s-node-1 -p '{"spec":{"unschedulable":true}}'

  # Update a container's image using a JSON patch with positional arrays
  kubectl patch pod valid-pod --type='json' -p='[{"op": "replace", "path": "/spec/containers/0/image", "value":"new image"}]'

  # Update a deployment's replicas through the 'scale' subresource using a merge patch
  kubectl patch deployment nginx-deployment --subresource='scale' --type='merge' -p '{"spec":{"replicas":2}}'`

// kinds are the values of --type.
func kinds() map[string]types.PatchType {
	return map[string]types.PatchType{"json": types.JSONPatchType, "merge": types.MergePatchType,
		"strategic": types.StrategicMergePatchType}
}

// Options is one run of "kubectl patch".
type Options struct {
	write.Base
	target            write.Target
	args              []string
	patch, file       string
	kind, subresource string
	local             bool
	document          []byte
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-patch"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
		Short:   "Update fields of a resource",
		Long:    "Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.\n\n JSON and YAML formats are accepted.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddRecord(cmd)
	o.target.Files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to update")
	set.StringVarP(&o.patch, "patch", "p", "", "The patch to be applied to the resource JSON or YAML file.")
	set.StringVar(&o.file, "patch-file", "", "A file containing a patch to be applied to the resource.")
	set.StringVar(&o.kind, "type", "strategic", "The type of patch being provided; one of [json merge strategic]")
	set.StringVar(&o.subresource, "subresource", "",
		"If specified, patch will operate on the subresource of the requested object.")
	set.BoolVar(&o.local, "local", false,
		"If true, patch will operate on the content of the file, not the server-side resource.")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate reads the patch.
func (o *Options) Validate() error {
	switch {
	case o.patch != "" && o.file != "":
		return errors.New("cannot specify --patch and --patch-file together")
	case o.patch == "" && o.file == "":
		return errors.New("must specify --patch or --patch-file containing the contents of the patch")
	case o.local && len(o.args) > 0:
		return errors.New("cannot specify --local and server resources")
	}
	if _, ok := kinds()[o.kind]; !ok {
		return fmt.Errorf("--type must be one of [json merge strategic], not %q", o.kind)
	}
	content := []byte(o.patch)
	if o.file != "" {
		var err error
		if content, err = os.ReadFile(o.file); err != nil {
			return fmt.Errorf("unable to read patch file: %w", err)
		}
	}
	var err error
	if o.document, err = yaml.ToJSON(content); err != nil {
		return fmt.Errorf("unable to parse %q: %w", content, err)
	}
	_, err = o.Printer("patched")
	return err
}

// Run patches what it finds.
func (o *Options) Run(ctx context.Context) error {
	q := o.target.Request(&o.Base, o.args)
	q.Latest, q.Local, q.NamesOnly = !o.local, o.local, false
	q.Subresource = o.subresource
	infos, err := o.Client.Resolve(ctx, q)
	if err == nil && len(infos) == 0 {
		return errors.New("no objects passed to patch")
	}
	return resource.Each(infos, err, func(i *resource.Info) error { return o.patchOne(ctx, i) })
}

func (o *Options) patchOne(ctx context.Context, i *resource.Info) error {
	before := i.Object
	kind := kinds()[o.kind]
	if o.local || o.DryRun == write.DryRunClient {
		after, err := apply(kind, before, o.document)
		if err != nil {
			return err
		}
		i.Object = after
	} else if err := i.Patch(ctx, kind, o.document, o.PatchOptions(), o.subresource); err != nil {
		return err
	}
	if !o.local {
		if err := o.RecordPatch(ctx, i); err != nil {
			return err
		}
	}
	operation := "patched"
	if equality.Semantic.DeepEqual(before.Object, i.Object.Object) {
		operation = "patched (no change)"
	}
	p, err := o.Print.Printer(operation)
	if err != nil {
		return err
	}
	return p.Print(i.Object, o.Out)
}

// apply patches obj here.
func apply(kind types.PatchType, obj *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	data, err := obj.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var patched []byte
	switch kind {
	case types.JSONPatchType:
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fmt.Errorf("decode the patch: %w", err)
		}
		if patched, err = p.Apply(data); err != nil {
			return nil, fmt.Errorf("apply the patch: %w", err)
		}
	case types.MergePatchType:
		if patched, err = jsonpatch.MergePatch(data, patch); err != nil {
			return nil, fmt.Errorf("apply the patch: %w", err)
		}
	default:
		typed := write.Typed(obj.GroupVersionKind())
		if typed == nil {
			return nil, fmt.Errorf("strategic merge patch is not supported for %s locally, try --type merge",
				obj.GroupVersionKind())
		}
		if patched, err = strategicpatch.StrategicMergePatch(data, patch, typed); err != nil {
			return nil, fmt.Errorf("apply the patch: %w", err)
		}
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(patched)
}
