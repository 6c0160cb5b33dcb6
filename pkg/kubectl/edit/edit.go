// Package edit is "kubectl edit": objects in the user's editor, and what was changed back as a patch.
package edit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/mergepatch"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Edit the service named 'registry'
  kubectl edit svc/registry

  # Use an alternative editor
  KUBE_EDITOR="nano" kubectl edit svc/registry

  # Edit the deployment 'mydeployment' and save the modified config in its annotation
  kubectl edit deployment/mydeployment -o yaml --save-config`

// Options is one run of "kubectl edit".
type Options struct {
	write.Base
	target      write.Target
	args        []string
	subresource string
	outputPatch bool
	session     write.EditSession
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-edit"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "edit (RESOURCE/NAME | -f FILENAME)",
		Short:   "Edit a resource on the server",
		Long:    "Edit a resource from the default editor.\n\n The edit command allows you to directly edit any API resource you can retrieve via the command-line tools. It will open the editor defined by your KUBE_EDITOR, or EDITOR environment variables, or fall back to 'vi'. Several objects are edited as one List.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Print.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	o.AddSaveConfig(set)
	o.AddRecord(cmd)
	o.target.Files.AddFlags(set, "Filename, directory, or URL to files to use to edit the resource")
	set.BoolVar(&o.outputPatch, "output-patch", false, "Output the patch if the resource is edited.")
	o.session.AddWindows(set, "Defaults to the line ending native to your platform.")
	set.StringVar(&o.subresource, "subresource", "",
		"If specified, edit will operate on the subresource of the requested object.")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *Options) Validate() error {
	if o.outputPatch && o.Print.Output != "" {
		return errors.New("the edit doesn't support output the patch if output format is specified")
	}
	switch o.Print.Output {
	case "", "json", "yaml", "kyaml":
	default:
		return &printers.NoFormatError{Format: o.Print.Output, Allowed: []string{"json", "yaml", "kyaml"}}
	}
	_, err := o.Printer("edited")
	return err
}

// Run edits the objects one after the other.
func (o *Options) Run(ctx context.Context) error {
	q := o.target.Request(&o.Base, o.args)
	q.Subresource, q.All = o.subresource, len(o.args) == 1 && !strings.Contains(o.args[0], "/")
	infos, err := o.Client.Resolve(ctx, q)
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return errors.New("edit cancelled, no objects found")
	}
	s := o.session
	s.What, s.Format, s.Unchecked = name(infos[0]), o.Print.Output, !o.Checks()
	for _, i := range infos {
		shown := i.Object.DeepCopy()
		if !o.Print.ShowManagedFields {
			unstructured.RemoveNestedField(shown.Object, "metadata", "managedFields")
		}
		s.Objects = append(s.Objects, shown)
	}
	return Objects(ctx, o.IOStreams, s, func(edited *unstructured.Unstructured) error {
		at := 0
		if len(infos) > 1 {
			at = slices.IndexFunc(infos, func(i *resource.Info) bool {
				return i.Name == edited.GetName() && i.Namespace == edited.GetNamespace() &&
					i.Object.GroupVersionKind() == edited.GroupVersionKind()
			})
		}
		if at < 0 {
			return fmt.Errorf("no original object found for %#v", edited)
		}
		return o.save(ctx, infos[at], s.Objects[at], edited)
	})
}

// save patches the object with what was changed.
func (o *Options) save(ctx context.Context, i *resource.Info, shown, edited *unstructured.Unstructured) error {
	if err := o.UpdateLastApplied(edited); err != nil {
		return err
	}
	if err := o.Record(edited); err != nil {
		return err
	}
	before, err := resource.Encode(shown)
	if err != nil {
		return err
	}
	after, err := resource.Encode(edited)
	if err != nil {
		return err
	}
	patch, kind, err := write.Diff(i.Mapping.GroupVersionKind, before, after)
	if mergepatch.IsPreconditionFailed(err) {
		return errors.New("At least one of apiVersion, kind and name was changed")
	}
	if err != nil {
		return err
	}
	if string(patch) == "{}" {
		return o.Show("skipped", i.Object)
	}
	if o.outputPatch {
		fmt.Fprintf(o.Out, "Patch: %s\n", patch)
	}
	err = i.Patch(ctx, kind, patch, o.PatchOptions(), o.subresource)
	if err != nil {
		return refusal(i, err)
	}
	return o.Show("edited", i.Object)
}

// refusal turns one that the user can fix into reasons shown above the object; with others the editor does not open
// again.
func refusal(i *resource.Info, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return &Refused{Said: name(i) + " could not be found on the server", Gone: true}
	case !errors.As(err, &status):
		return err
	case !apierrors.IsInvalid(err) || status.Status().Details == nil:
		return &Refused{Said: fmt.Sprintf("%s could not be patched: %v", name(i), err)}
	}
	reasons := []string{fmt.Sprintf("%s was not valid:", name(i))}
	for _, c := range status.Status().Details.Causes {
		reasons = append(reasons, fmt.Sprintf("* %s: %s", c.Field, c.Message))
	}
	return &Reopen{Reasons: reasons, Invalid: true}
}

// name is the object as reasons name it: configmaps "x".
func name(i *resource.Info) string {
	return fmt.Sprintf("%s %q", i.Mapping.Resource.GroupResource().String(), i.Name)
}
