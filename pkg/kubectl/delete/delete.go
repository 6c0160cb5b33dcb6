// Package delete is "kubectl delete": it asks for the deletion of objects and waits until they are gone.
package delete

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Delete a pod using the type and name specified in pod.json
  kubectl delete -f ./pod.json

  # Delete pods and services with label name=myLabel
  kubectl delete pods,services -l name=myLabel

  # Delete a pod with minimal delay
  kubectl delete pod foo --now

  # Force delete a pod on a dead node
  kubectl delete pod foo --force

  # Delete all pods
  kubectl delete pods --all`

// Options is one run of "kubectl delete".
type Options struct {
	write.Base
	target write.Target
	args   []string

	deletion       write.Deletion
	now            bool
	ignoreNotFound bool
	interactive    bool
	output         string
	raw            string
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
		Short:   "Delete resources by file names, stdin, resources and names, or by resources and label selector",
		Long:    "Delete resources by file names, stdin, resources and names, or by resources and label selector.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *Options) addFlags(set *pflag.FlagSet) {
	o.target.AddFlags(set, "containing the resource to delete.")
	o.target.AddFieldSelector(set)
	o.target.AddAllNamespaces(set)
	o.AddDryRun(set)
	o.deletion.AddFlags(set, true)
	set.BoolVar(&o.now, "now", false,
		"If true, resources are signaled for immediate shutdown (same as --grace-period=1).")
	set.BoolVar(&o.ignoreNotFound, "ignore-not-found", false,
		`Treat "resource not found" as a successful delete. Defaults to "true" when --all is specified.`)
	set.BoolVarP(&o.interactive, "interactive", "i", false, "If true, delete resource only when user confirms.")
	set.StringVarP(&o.output, "output", "o", "", `Output mode. Use "-o name" for shorter output (resource/name).`)
	set.StringVar(&o.raw, "raw", "",
		"Raw URI to DELETE to the server.  Uses the transport specified by the kubeconfig file.")
}

// Complete reads the flags. A grace period of zero without --force is one of a second, for which delete waits.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	o.args = args
	if o.target.All || o.target.Selector != "" || o.target.FieldSelector != "" {
		if !cmd.Flags().Changed("ignore-not-found") {
			o.ignoreNotFound = true
		}
	}
	if err := o.CompleteWith(f); err != nil {
		return err
	}
	return o.settle()
}

func (o *Options) settle() error {
	switch {
	case o.now && o.deletion.Grace != -1:
		return errors.New("--now and --grace-period cannot be specified together")
	case o.now:
		o.deletion.Grace = 1
	}
	switch {
	case o.deletion.Force && o.deletion.Grace > 0:
		return errors.New("--force and --grace-period greater than 0 cannot be specified together")
	case o.deletion.Force:
		o.deletion.Grace = 0
	case o.deletion.Grace == 0:
		o.deletion.Grace = 1
	}
	return o.deletion.Complete(o.ErrOut)
}

// Validate judges the flags together.
func (o *Options) Validate() error {
	switch {
	case o.output != "" && o.output != "name":
		return fmt.Errorf("unexpected -o output mode: %v. We only support '-o name'", o.output)
	case o.raw != "" && (len(o.args) > 0 || !o.target.Files.Empty()):
		return errors.New("--raw and resources are mutually exclusive")
	case o.raw == "" && len(o.args) == 0 && o.target.Files.Empty() && !o.named():
		return errors.New("at least one resource must be specified to use a selector")
	case o.target.All && (o.target.Selector != "" || o.target.FieldSelector != ""):
		return errors.New("setting 'all' parameter but found a non empty selector. ")
	}
	if o.deletion.Force {
		fmt.Fprintln(o.ErrOut, "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.")
	}
	return nil
}

// Run deletes what it finds, reports what it cannot, and waits for what is on its way out.
func (o *Options) Run(ctx context.Context) error {
	if o.raw != "" {
		return o.runRaw(ctx)
	}
	q := o.target.Request(&o.Base, o.args)
	q.Latest = false
	q.NamesOnly = true
	infos, err := o.Client.Resolve(ctx, q)
	if o.ignoreNotFound {
		err = utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	if o.interactive && len(infos) > 0 {
		if ok, e := o.confirm(infos); e != nil || !ok {
			return e
		}
	}
	if len(infos) == 0 && err == nil && !o.named() {
		fmt.Fprintln(o.Out, "No resources found")
	}
	if o.Explicit && slices.ContainsFunc(infos, func(i *resource.Info) bool { return !i.Namespaced() }) {
		fmt.Fprintln(o.ErrOut, "Warning: deleting cluster-scoped resources, not scoped to the provided namespace")
	}
	return o.deleteAll(ctx, infos, err)
}

func (o *Options) runRaw(ctx context.Context) error {
	result := o.Client.REST.Delete().RequestURI(o.raw).Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	_, err = o.Raw().Out.Write(data)
	return err
}

// confirm asks the user with -i.
func (o *Options) confirm(infos []*resource.Info) (bool, error) {
	fmt.Fprintln(o.Out, "You are about to delete the following "+fmt.Sprint(len(infos))+" resource(s):")
	for _, i := range infos {
		fmt.Fprintln(o.Out, i.ResourceName())
	}
	fmt.Fprint(o.Out, "Do you want to continue? (y/N): ")
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(o.Out, "deletion is cancelled")
	return false, nil
}

// deleteAll asks for the deletion of each object and then, with --wait, awaits their end; resolve is the error of what
// was not found.
func (o *Options) deleteAll(ctx context.Context, infos []*resource.Info, resolve error) error {
	var leaving []gone
	err := resource.Each(infos, resolve, func(i *resource.Info) error {
		g, err := o.deleteOne(ctx, i)
		if o.ignoreNotFound && apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			leaving = append(leaving, g)
		}
		return err
	})
	if err != nil || !o.deletion.Wait || o.DryRun != write.DryRunNone {
		return err
	}
	return o.await(ctx, leaving)
}

// named reports whether objects were asked for by name, so that nothing found needs no word of its own.
func (o *Options) named() bool {
	return o.target.Files.Empty() && !o.target.All && o.target.Selector == "" && o.target.FieldSelector == ""
}

func (o *Options) deleteOne(ctx context.Context, i *resource.Info) (gone, error) {
	opts := o.deletion.Options()
	opts.DryRun = resource.DryRun(o.DryRun == write.DryRunServer)
	g := gone{info: i}
	if o.DryRun != write.DryRunClient {
		answer, err := i.Delete(ctx, opts)
		if err != nil {
			return g, write.WithSource("deleting", i.Source, err)
		}
		g.uid = uidOf(answer)
	}
	o.say(i)
	return g, nil
}

// say prints the result for one object.
func (o *Options) say(i *resource.Info) {
	if o.output == "name" {
		fmt.Fprintln(o.Out, i.ResourceName())
		return
	}
	operation := "deleted"
	if o.deletion.Grace == 0 {
		operation = "force deleted"
	}
	where := ""
	if i.Namespaced() {
		where = fmt.Sprintf(" from %s namespace", i.Namespace)
	}
	kind := strings.TrimSuffix(i.ResourceName(), "/"+i.Name)
	fmt.Fprintf(o.Out, "%s %q %s%s%s\n", kind, i.Name, operation, where, o.Suffix())
}
