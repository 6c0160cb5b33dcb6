// Package wait blocks until objects have a condition or a value, are gone, or exist.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of wait.
type Options struct {
	cli.IOStreams
	request resource.Request
	print   *printers.Flags
	// wants are the values of --for, in the order in which Run waits for them; want and check are the current ones.
	wants   []string
	want    string
	timeout time.Duration

	client  *resource.Client
	printer printers.Printer
	check   check
}

// check reports whether the wait for an object is over; u is nil if the object does not exist. An error ends the wait.
type check func(u *unstructured.Unstructured) (bool, error)

// NewCommand returns "kubectl wait".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, print: printers.NewFlags()}
	cmd := &cobra.Command{
		Use:   "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]]",
		Short: "Wait for a specific condition on one or many resources",
		Long:  "Wait for a specific condition on one or many resources.\n\n The command takes multiple resources and waits until the specified condition is seen in the Status field of every given resource.",
		Example: `
# Wait for the pod "busybox1" to contain the status condition of type "Ready"
kubectl wait --for=condition=Ready pod/busybox1

# Wait for the pod "busybox1" to contain the status phase to be "Running"
kubectl wait --for=jsonpath='{.status.phase}'=Running pod/busybox1

# Wait for the pod "busybox1" to be deleted, with a timeout of 60s
kubectl wait --for=delete pod/busybox1 --timeout=60s`,
		RunE: cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.print.AddFlags(set)
	o.request.Files.Recursive = true
	o.request.Files.AddFlags(set, "identifying the resource.")
	set.StringVarP(&o.request.LabelSelector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3))")
	set.StringVar(&o.request.FieldSelector, "field-selector", "",
		"Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	set.BoolVarP(&o.request.AllNamespaces, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.BoolVar(&o.request.All, "all", false, "Select all resources in the namespace of the specified resource types")
	set.BoolVar(&o.request.Local, "local", false,
		"If true, judge the objects of the files as they are, and do NOT contact api-server.")
	set.DurationVar(&o.timeout, "timeout", 30*time.Second,
		"The length of time to wait before giving up. Zero means check once and don't wait, negative means wait for a week.")
	set.StringArrayVar(&o.wants, "for", nil,
		"The condition to wait on: [create|delete|condition=condition-name[=condition-value]|jsonpath='{JSONPath expression}'=[JSONPath value]]. The default condition-value is true. Condition values are compared after Unicode simple case folding, which is a more general form of case-insensitivity. Multiple conditions are supported and AND'ed to each other in a sequential order. If --for=create is passed, it is always waited first.")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) (err error) {
	if o.request.Namespace, o.request.ExplicitNamespace, err = f.Namespace(); err != nil {
		return err
	}
	o.request.Args, o.request.Latest = args, !o.request.Local
	if o.timeout < 0 {
		o.timeout = 7 * 24 * time.Hour
	}
	if len(o.wants) == 0 {
		o.wants = []string{""}
	}
	for _, want := range o.wants {
		if _, err = parse(want); err != nil {
			return err
		}
	}
	operation := "condition met"
	if o.printer, err = o.print.Printer(operation); err != nil {
		return err
	}
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	if o.request.Local && o.request.Files.Empty() {
		return resource.ErrLocalNeedsFiles
	}
	return nil
}

func (o *Options) deletion() bool { return strings.EqualFold(o.want, "delete") }

func (o *Options) creation() bool { return strings.EqualFold(o.want, "create") }

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, max(o.timeout, time.Millisecond), errTimeout)
	defer cancel()
	// An object must exist before anything else can be checked, so create is waited for first, wherever it stands.
	if i := slices.IndexFunc(o.wants, func(want string) bool {
		return strings.EqualFold(want, "create")
	}); i > 0 && o.timeout > 0 && !o.request.Local {
		o.want = o.wants[i]
		if _, err := o.resolve(ctx); err != nil {
			return err
		}
	}
	for _, want := range o.wants {
		var err error
		if o.check, err = parse(want); err != nil {
			return err
		}
		o.want = want
		if err := o.all(ctx); err != nil {
			return err
		}
	}
	return nil
}

// all waits until the current want holds for all objects, one after the other; --timeout bounds them together.
func (o *Options) all(ctx context.Context) error {
	infos, err := o.resolve(ctx)
	if err == nil && len(infos) == 0 && !o.deletion() {
		return errors.New("no matching resources found")
	}
	one := o.one
	if o.timeout == 0 || o.request.Local {
		one = o.once // nothing changes an object of a file
	}
	return resource.Each(infos, err, func(i *resource.Info) error { return one(ctx, i) })
}

var errTimeout = errors.New("timed out waiting for the condition")

// resolve finds the objects. For creation it asks every 250 ms until they exist; for deletion, missing objects are
// done. Otherwise it ignores the end of ctx: --timeout bounds the wait, not the first look.
func (o *Options) resolve(ctx context.Context) ([]*resource.Info, error) {
	q := o.request
	q.IgnoreNotFound = o.deletion()
	if !o.creation() || o.request.Local {
		infos, err := o.client.Resolve(context.WithoutCancel(ctx), q)
		return infos, err
	}
	q.NamesOnly = len(q.Args) > 0
	q.Latest = false
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		infos, err := o.client.Resolve(ctx, q)
		if err == nil && len(infos) > 0 {
			return infos, nil
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// once checks one object as it is now. ctx may be over already (--timeout=0): it bounds waiting only.
func (o *Options) once(ctx context.Context, info *resource.Info) error {
	if info.Object == nil {
		err := info.Get(context.WithoutCancel(ctx))
		if apierrors.IsNotFound(err) && o.creation() {
			return errTimeout
		}
		if err != nil {
			return err
		}
	}
	met, err := o.check(info.Object)
	if err != nil {
		return err
	}
	if !met {
		return fmt.Errorf("condition not met for %s/%s", info.Mapping.Resource.Resource, info.Name)
	}
	return o.printer.Print(info.Object, o.Out)
}

// one waits for one object: it lists it, then watches from that version. It does so again whenever the server ends the
// watch, so it misses no state that lasts, until the time is over.
func (o *Options) one(ctx context.Context, info *resource.Info) error {
	uid := ""
	if info.Object != nil {
		uid = string(info.Object.GetUID())
	}
	var last *unstructured.Unstructured
	judge := func(u *unstructured.Unstructured) error {
		if u != nil {
			last = u
			if o.deletion() && uid != "" && string(u.GetUID()) != uid {
				return errMet // another object took the name
			}
		}
		met, err := o.check(u)
		if err == nil && met {
			return errMet
		}
		return err
	}
	for {
		err := o.look(ctx, info, judge)
		switch {
		case errors.Is(err, errMet):
			if last == nil {
				last = info.Object
			}
			if last == nil {
				return nil
			}
			return o.printer.Print(last, o.Out)
		case ctx.Err() != nil:
			if o.creation() {
				return context.Cause(ctx)
			}
			if errors.Is(context.Cause(ctx), errTimeout) {
				return fmt.Errorf("%w on %s/%s", errTimeout, info.Mapping.Resource.Resource, info.Name)
			}
			return cli.Cause(ctx)
		case err != nil:
			return err
		}
	}
}

// errMet ends a watch because the check holds.
var errMet = errors.New("condition met")

// look passes the object as it is, then each change, to judge, until judge returns an error or the server ends the
// watch.
func (o *Options) look(ctx context.Context, info *resource.Info, judge func(*unstructured.Unstructured) error) error {
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + info.Name}
	list, err := o.client.List(ctx, info.Mapping, info.Namespace, opts)
	if err != nil {
		return err
	}
	var now *unstructured.Unstructured
	if len(list.Items) > 0 {
		now = &list.Items[0]
	}
	if err := judge(now); err != nil {
		return err
	}
	opts.ResourceVersion = list.GetResourceVersion()
	return o.client.Watch(ctx, info.Mapping, info.Namespace, resource.Query(&opts), resource.JSON,
		func(e resource.Event) error {
			u := &unstructured.Unstructured{}
			switch e.Type {
			case "DELETED":
				return judge(nil)
			case "ADDED", "MODIFIED":
				if err := u.UnmarshalJSON(e.Object); err != nil {
					return err
				}
				return judge(u)
			}
			return nil
		})
}
