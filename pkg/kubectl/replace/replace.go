// Package replace is "kubectl replace": it puts objects in the place of those on the server, or deletes and creates
// them.
package replace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Replace a pod using the data in pod.json
  kubectl replace -f ./pod.json

  # Force replace, delete and then re-create the resource
  kubectl replace --force -f ./pod.json`

// Options is one run of "kubectl replace".
type Options struct {
	write.Base
	files       resource.Files
	deletion    write.Deletion
	raw         string
	subresource string
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-replace"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "replace -f FILENAME",
		Short:   "Replace a resource by file name or stdin",
		Long:    "Replace a resource by file name or stdin.\n\n JSON and YAML formats are accepted. If replacing an existing resource, the complete resource spec must be provided.",
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	o.AddSaveConfig(set)
	o.files.AddFlags(set, "The files that contain the configurations to replace.")
	o.deletion.AddFlags(set, false)
	set.StringVar(&o.raw, "raw", "",
		"Raw URI to PUT to the server.  Uses the transport specified by the kubeconfig file.")
	set.StringVar(&o.subresource, "subresource", "",
		"If specified, replace will operate on the subresource of the requested object.")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	switch {
	case o.files.Empty():
		return write.NoFiles()
	case len(args) > 0:
		return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
	}
	if err := o.deletion.Complete(o.ErrOut); err != nil {
		return err
	}
	return o.CompleteWith(f)
}

// Validate judges the flags together.
func (o *Options) Validate() error {
	if err := write.Raw(o.raw).Validate(o.Flags, o.files, map[string]bool{"--force": o.deletion.Force}); err != nil {
		return err
	}
	switch {
	case o.deletion.Force && o.DryRun != write.DryRunNone:
		return errors.New("--dry-run can not be used when --force is set")
	case o.deletion.Grace >= 0 && !o.deletion.Force:
		return errors.New("--grace-period must have --force specified")
	case o.deletion.Timeout != 0 && !o.deletion.Force:
		return errors.New("--timeout must have --force specified")
	}
	_, err := o.Printer("replaced")
	return err
}

// Run replaces what the files hold, one after the other, and goes on after a refusal.
func (o *Options) Run(ctx context.Context) error {
	if o.raw != "" {
		return write.Raw(o.raw).Send(ctx, &o.Base, http.MethodPut, o.files)
	}
	o.files.Check = o.Checks()
	infos, err := o.Client.Resolve(ctx,
		resource.Request{Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit})
	replace := o.put
	if o.deletion.Force {
		replace = o.recreate
		if err := o.removeAll(ctx, infos); err != nil {
			return err
		}
	}
	return resource.Each(infos, err, func(i *resource.Info) error {
		if err := replace(ctx, i); err != nil {
			return err
		}
		return o.Show("replaced", i.Object)
	})
}

func (o *Options) put(ctx context.Context, i *resource.Info) error {
	if err := o.UpdateLastApplied(i.Object); err != nil {
		return write.WithSource("replacing", i.Source, err)
	}
	if o.DryRun == write.DryRunClient {
		return nil
	}
	return write.WithSource("replacing", i.Source, i.Update(ctx, o.UpdateOptions(), o.subresource))
}

// removeAll deletes the objects that are there and then waits until they are gone.
func (o *Options) removeAll(ctx context.Context, infos []*resource.Info) error {
	var leaving []*resource.Info
	for _, i := range infos {
		if _, err := i.Delete(ctx, o.deletion.Options()); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return write.WithSource("deleting", i.Source, err)
		}
		leaving = append(leaving, i)
		kind, where := strings.TrimSuffix(i.ResourceName(), "/"+i.Name), ""
		if i.Namespaced() {
			where = fmt.Sprintf(" from %s namespace", i.Namespace)
		}
		fmt.Fprintf(o.Out, "%s %q deleted%s\n", kind, i.Name, where)
	}
	for _, i := range leaving {
		err := write.Await(ctx, o.Client, i.Mapping, i.Namespace, i.Name, o.deletion.Timeout,
			func(u *unstructured.Unstructured) (bool, error) {
				return u == nil, nil
			})
		if err != nil {
			return fmt.Errorf("wait for the deletion of %s: %w", i.ResourceName(), err)
		}
	}
	return nil
}

func (o *Options) recreate(ctx context.Context, i *resource.Info) error {
	if err := o.UpdateLastApplied(i.Object); err != nil {
		return write.WithSource("creating", i.Source, err)
	}
	return i.Create(ctx, o.CreateOptions())
}
