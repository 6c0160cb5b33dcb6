// Package rollout manages the rollouts of Deployments, DaemonSets and StatefulSets: their status and history, undo,
// restart, pause and resume.
package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// options is one run of a subcommand on each object named.
type options struct {
	cli.IOStreams
	*write.Flags
	request  resource.Request
	revision int64
	// back is set for undo, which finds no revision below 0.
	back     bool
	watch    bool
	timeout  time.Duration
	client   *resource.Client
	template Describe
	act      func(context.Context, *options, *resource.Info) error
}

// Describe shows what pods are made of.
type Describe func(io.Writer, corev1.PodTemplateSpec)

// NewCommand returns what makes "kubectl rollout"; template shows the template of a revision.
func NewCommand(template Describe) func(*cli.Factory, cli.IOStreams) *cobra.Command {
	return func(f *cli.Factory, streams cli.IOStreams) *cobra.Command { return newCommand(f, streams, template) }
}

func newCommand(f *cli.Factory, streams cli.IOStreams, template Describe) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout SUBCOMMAND",
		Short: "Manage the rollout of a resource",
		Long:  "Manage the rollout of one or many resources.\n\n Valid resource types include:\n\n  *  deployments\n  *  daemonsets\n  *  statefulsets",
		Example: `
# Rollback to the previous deployment
kubectl rollout undo deployment/abc

# Check the rollout status of a daemonset
kubectl rollout status daemonset/foo

# Restart a deployment
kubectl rollout restart deployment/abc

# Restart deployments with the 'app=nginx' label
kubectl rollout restart deployment --selector=app=nginx`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				cmd.SetErr(cmd.OutOrStdout()) // its help is what was asked for
			}
			return cli.Group(cmd, args)
		},
	}
	add := func(name, manager, short string, act func(context.Context, *options, *resource.Info) error) (*options,
		*cobra.Command) {
		of := "(TYPE NAME | TYPE/NAME) [flags]"
		if manager != "" {
			of = "RESOURCE"
		}
		o := &options{template: template, IOStreams: streams, Flags: write.NewFlags(manager), act: act}
		sub := &cobra.Command{Use: name + " " + of, Short: short, Long: short + ".",
			Example: fmt.Sprintf("# %s, of a deployment\nkubectl rollout %s deployment/web", short, name),
			RunE:    cli.RunE(f, o)}
		o.request.Files.AddFlags(sub.Flags(),
			"Filename, directory, or URL to files identifying the resource to get from a server.")
		sub.Flags().StringVarP(&o.request.LabelSelector, "selector", "l", "",
			"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
		cmd.AddCommand(sub)
		return o, sub
	}
	o, sub := add("status", "", "Show the status of the rollout", status)
	sub.Flags().BoolVarP(&o.watch, "watch", "w", true, "Watch the status of the rollout until it's done.")
	sub.Flags().DurationVar(&o.timeout, "timeout", 0,
		"The length of time to wait before ending watch, zero means never. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
	sub.Flags().Int64Var(&o.revision, "revision", 0,
		"Pin to a specific revision for showing its status. Defaults to 0 (last revision).")
	o, sub = add("history", "", "View rollout history", history)
	o.Print.AddFlags(sub.Flags())
	sub.Flags().Int64Var(&o.revision, "revision", 0, "See the details, including podTemplate of the revision specified")
	o, sub = add("undo", "", "Undo a previous rollout", undo)
	o.back = true
	sub.Flags().Int64Var(&o.revision, "to-revision", 0, "The revision to rollback to. Default to 0 (last revision).")
	o.AddFlags(sub.Flags())
	for _, w := range []struct {
		name, short string
		act         func(context.Context, *options, *resource.Info) error
	}{
		{"restart", "Restart a resource", restart},
		{"pause", "Mark the provided resource as paused", pause},
		{"resume", "Resume a paused resource", resume},
	} {
		o, sub := add(w.name, "kubectl-rollout", w.short, w.act)
		o.Print.AddFlags(sub.Flags())
		o.AddManager(sub.Flags())
	}
	return cmd
}

// Complete implements cli.Options.
func (o *options) Complete(f *cli.Factory, _ *cobra.Command, args []string) (err error) {
	if o.request.Namespace, o.request.ExplicitNamespace, err = f.Namespace(); err != nil {
		return err
	}
	o.request.Args, o.request.Latest, o.request.Lists = args, true, true
	if err = o.Flags.Complete(o.ErrOut); err != nil {
		return err
	}
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *options) Validate() error {
	switch {
	case len(o.request.Args) == 0 && o.request.Files.Empty():
		return errors.New("required resource not specified")
	case o.revision < 0 && !o.back:
		return fmt.Errorf("revision must be a positive integer: %v", o.revision)
	}
	_, err := o.Printer("")
	return err
}

// Run implements cli.Options.
func (o *options) Run(ctx context.Context) error {
	infos, err := o.client.Resolve(ctx, o.request)
	if err == nil && len(infos) == 0 {
		fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.request.Namespace)
		return nil
	}
	return resource.Each(infos, err, func(i *resource.Info) error { return o.act(ctx, o, i) })
}

// subject is the object as refusals name it: deployments.apps "web". It begins with "error: ", which is then said of
// each of several objects too.
func subject(i *resource.Info) string {
	return fmt.Sprintf("error: %s %q", i.Mapping.Resource.GroupResource(), i.Name)
}

// patch sends a merge patch and says what was done.
func (o *options) patch(ctx context.Context, i *resource.Info, body any, done string) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := i.Patch(ctx, types.MergePatchType, data, o.PatchOptions()); err != nil {
		return err
	}
	return o.say(i, done)
}

func (o *options) say(i *resource.Info, done string) error {
	p, err := o.Printer(done)
	if err != nil {
		return err
	}
	return p.Print(i.Object, o.Out)
}

// restartedAt is the annotation of a pod template that makes new pods of it.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func restart(ctx context.Context, o *options, i *resource.Info) error {
	w, err := decode(i, subject(i)+" restarting is not supported")
	if err != nil {
		return err
	}
	if paused(w) {
		return errors.New(subject(i) + " can't restart paused deployment (run rollout resume first)")
	}
	now := time.Now().Format(time.RFC3339)
	if w.podTemplate().Annotations[restartedAt] == now {
		return fmt.Errorf("error: failed to create patch for %s: if restart has already been triggered within the past second, please wait before attempting to trigger another", i.Name)
	}
	stamp := map[string]any{restartedAt: now}
	return o.patch(ctx, i, map[string]any{
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": stamp}}}},
		"restarted")
}

func pause(ctx context.Context, o *options, i *resource.Info) error {
	d, err := pausable(i, subject(i)+" pausing is not supported")
	if err != nil {
		return err
	}
	if d.Spec.Paused {
		return errors.New(subject(i) + " is already paused")
	}
	return o.patch(ctx, i, map[string]any{"spec": map[string]any{"paused": true}}, "paused")
}

func resume(ctx context.Context, o *options, i *resource.Info) error {
	d, err := pausable(i, subject(i)+" resuming is not supported")
	if err != nil {
		return err
	}
	if !d.Spec.Paused {
		return errors.New(subject(i) + " is not paused")
	}
	return o.patch(ctx, i, map[string]any{"spec": map[string]any{"paused": nil}}, "resumed")
}
