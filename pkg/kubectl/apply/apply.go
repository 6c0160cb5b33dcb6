// Package apply is "kubectl apply": it brings objects to the state of files.
//
// Client-side, it merges three documents: the file, what was applied last (kept in the annotation
// kubectl.kubernetes.io/last-applied-configuration), and what the server has. A field that the last configuration had
// and the file lacks is deleted; a field that neither has belongs to somebody else and stays. With --server-side the
// server merges, by the managers of fields.
//
// One run has three steps, in this order: read the files, apply each object, prune what was applied before and is not
// in the files any more. Pruning comes last and only after every object was applied, because an object that failed
// would otherwise look like one that left the files.
package apply

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Apply the configuration in pod.json to a pod
  kubectl apply -f ./pod.json

  # Apply the JSON passed into stdin to a pod
  cat pod.json | kubectl apply -f -

  # Apply what a kustomization builds to
  kubectl apply -k overlays/production

  # Apply what is labelled app=web, and delete what was applied with that label and is in the file no more
  kubectl apply --prune -f web.yaml -l app=web`

// manager is the field manager of client-side apply.
const manager = "kubectl-client-side-apply"

// Options is one run of "kubectl apply".
type Options struct {
	write.Base
	files    resource.Files
	selector string
	all      bool
	prune    write.Prune
	// setName is the value of --applyset; set is what it names, nil without it.
	setName     string
	set         *applySet
	serverSide  write.ServerSide
	overwrite   bool
	deletion    write.Deletion
	subresource string
	cmd         *cobra.Command
	// ahead reads the existing objects, up to sixteen before their turn. Writes keep the order of the files.
	ahead *resource.Ahead
}

// NewCommand returns a function that makes the command; editor serves "edit-last-applied".
func NewCommand(editor write.Editor) func(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return func(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
		o := &Options{Base: write.Base{Flags: write.NewFlags(manager), IOStreams: streams}}
		cmd := &cobra.Command{
			Use:     "apply (-f FILENAME | -k DIRECTORY)",
			Short:   "Apply a configuration to a resource by file name or stdin",
			Long:    "Apply a configuration to a resource by file name or stdin. The resource name must be specified. This resource will be created if it doesn't exist yet.\n\n JSON and YAML formats are accepted.",
			Example: example,
			Args:    cobra.ArbitraryArgs,
			RunE:    cli.RunE(f, o),
		}
		o.addFlags(cmd)
		cmd.AddCommand(newEditLast(f, streams, editor), newSetLast(f, streams), newViewLast(f, streams))
		return cmd
	}
}

func (o *Options) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	o.AddRecord(cmd)
	o.files.AddFlags(set, "The files that contain the configurations to apply.")
	set.StringVarP(&o.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.BoolVar(&o.all, "all", false, "Select all resources in the namespace of the specified resource types.")
	o.prune.AddFlags(set, "Automatically delete resource objects, that do not appear in the configs and are created by either apply or create --save-config. Should be used with either -l or --all, or with --applyset where KUBECTL_APPLYSET=true allows it.")
	if os.Getenv("KUBECTL_APPLYSET") == "true" {
		set.StringVar(&o.setName, "applyset", "",
			"[alpha] The name of the ApplySet that tracks which resources are being managed, for the purposes of determining what to prune. Live resources that are part of the ApplySet but have been removed from the provided configs will be deleted. Format: [RESOURCE][.GROUP]/NAME. A Secret will be used if no resource or group is specified.")
	}
	o.serverSide.AddFlags(set)
	// Patches of Kubernetes' kinds are made with their Go types, which say of every field what its OpenAPI schema does.
	set.Bool("openapi-patch", true,
		"If true, use openapi to calculate diff when the openapi presents and the resource can be found in the openapi spec. Otherwise, fall back to use baked-in types.")
	set.BoolVar(&o.overwrite, "overwrite", true,
		"Automatically resolve conflicts between the modified and live configuration by using values from the modified configuration")
	o.deletion.AddFlags(set, false)
	set.StringVar(&o.subresource, "subresource", "",
		"If specified, apply will operate on the subresource of the requested object.  Only allowed when using --server-side.")
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	o.cmd = cmd
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
	}
	if o.files.Empty() {
		return write.NoFiles()
	}
	if err := o.deletion.Complete(o.ErrOut); err != nil {
		return err
	}
	o.serverSide.Complete(cmd.Flags(), o.Flags)
	if err := o.CompleteWith(f); err != nil {
		return err
	}
	if o.setName != "" {
		return o.completeSet(cmd.Context(), f.Version)
	}
	if err := o.validatePrune(); err != nil {
		return err // before a request for the server's kinds
	}
	return o.prune.Complete(o.Client)
}

// Validate refuses what does not go together.
func (o *Options) Validate() error {
	if err := o.serverSide.Validate(); err != nil {
		return err
	}
	switch {
	case o.subresource != "" && !o.serverSide.On:
		return errors.New("--subresource can only be specified for --server-side")
	case o.serverSide.On && o.DryRun == write.DryRunClient:
		return errors.New("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
	case o.deletion.Force && o.serverSide.On:
		return errors.New("--force cannot be used with --server-side")
	case o.deletion.Force && o.DryRun == write.DryRunServer:
		return errors.New("--dry-run=server cannot be used with --force")
	case o.all && o.selector != "":
		return errors.New("cannot set --all and --selector at the same time")
	}
	_, err := o.Printer("created")
	return err
}

// Run applies the objects of the files in their order, and goes on after an error. It prunes only if all were applied.
// An apply set is written twice: before the first object, so that the parent names every kind and namespace that may
// hold a member, and after pruning, when it may name fewer.
func (o *Options) Run(ctx context.Context) error {
	o.files.Check = o.Checks()
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit, LabelSelector: o.selector,
	})
	if len(infos) == 0 && err == nil {
		return errors.New("no objects passed to apply")
	}
	if o.set != nil {
		if err == nil {
			err = o.set.begin(ctx, infos)
		}
		if err != nil {
			return err // pruning deletes members that are not in the set, so the set must be complete
		}
	}
	cli.Serial(ctx)
	o.ahead = resource.NewAhead(infos)
	apply := o.apply
	if o.serverSide.On {
		apply = o.applyServerSide
	}
	shown := &unstructured.UnstructuredList{}
	done := &applied{namespaces: sets.New[string](), uids: sets.New[types.UID]()}
	err = resource.Each(infos, err, func(i *resource.Info) error {
		operation, err := apply(ctx, i)
		if err != nil {
			return err
		}
		done.add(i)
		if o.ShowsObjects() {
			shown.Items = append(shown.Items, *i.Object)
			return nil
		}
		return o.Show(operation, i.Object)
	})
	if e := o.showAll(shown); err == nil {
		err = e
	}
	if err != nil || !o.prune.On {
		return err
	}
	return o.pruneAll(ctx, done)
}

// showAll prints the objects for -o: one by itself, several as a list.
func (o *Options) showAll(list *unstructured.UnstructuredList) error {
	switch len(list.Items) {
	case 0:
		return nil
	case 1:
		return o.Show("", &list.Items[0])
	}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	list.Object["metadata"] = map[string]any{}
	return o.Show("", list)
}

// apply brings one object to the state of its file and returns what it did: "created", "configured" or "unchanged".
//
// The object may have been read before its turn. It may exist by now, for example because an earlier object of the
// files makes a controller create it. So "already exists" after an early "not found" is no error: the object is read
// again and patched.
func (o *Options) apply(ctx context.Context, i *resource.Info) (string, error) {
	if i.Name == "" && i.Object.GetGenerateName() != "" {
		return "", fmt.Errorf("from %s: cannot use generate name with apply", i.Object.GetGenerateName())
	}
	if err := o.Record(i.Object); err != nil {
		return "", write.WithSource("applying", i.Source, err)
	}
	want, err := write.Want(i.Object)
	if err != nil {
		return "", write.WithSource("applying", i.Source, err)
	}
	early, err := o.get(ctx, i)
	if apierrors.IsNotFound(err) {
		i.Object = want.DeepCopy()
		dropNulls(i.Object.Object) // null deletes a field in a patch, and a new object has nothing to delete
		if o.DryRun == write.DryRunClient {
			return "created", nil
		}
		err = i.Create(ctx, o.CreateOptions())
		if !early || !apierrors.IsAlreadyExists(err) {
			return "created", write.WithSource("creating", i.Source, err)
		}
		err = i.Get(ctx) // created since the early read
	}
	if err != nil {
		return "", write.WithSource(
			fmt.Sprintf("retrieving current configuration of:\n%s\nfrom server for:", describe(i)), i.Source, err)
	}
	if _, ok := i.Object.GetAnnotations()[write.LastAppliedAnnotation]; !ok {
		fmt.Fprintf(o.ErrOut, warnNoAnnotation, i.Mapping.Resource.Resource, i.Name, write.LastAppliedAnnotation)
	}
	o.warnIfDeleting(i)
	changed, err := (&patcher{o: o, info: i, want: want}).patch(ctx)
	if err != nil {
		return "", err
	}
	if !changed {
		return "unchanged", nil
	}
	return "configured", nil
}

// warnIfDeleting warns that a change of an object that is being deleted goes away with it.
func (o *Options) warnIfDeleting(i *resource.Info) {
	if i.Object.GetDeletionTimestamp() != nil {
		fmt.Fprintf(o.ErrOut, "Warning: Detected changes to resource %s which is currently being deleted.\n", i.Name)
	}
}

const warnNoAnnotation = "Warning: resource %s/%s is missing the %s annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n"

// get reads an object, and reports whether the server was asked before the object's turn.
func (o *Options) get(ctx context.Context, i *resource.Info) (early bool, err error) {
	if i.Name == "" {
		return false, errors.New("resource name may not be empty")
	}
	return o.ahead.Get(ctx, i)
}

// describe says in errors which object is meant.
func describe(i *resource.Info) string {
	return fmt.Sprintf("Resource: %q, GroupVersionKind: %q\nName: %q, Namespace: %q",
		i.Mapping.Resource.String(), i.Mapping.GroupVersionKind.String(), i.Name, i.Namespace)
}

// dropNulls removes the keys of m, at any depth, whose value is null.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, below := range v {
			if below == nil {
				delete(v, k)
			} else {
				dropNulls(below)
			}
		}
	case []any:
		for _, below := range v {
			dropNulls(below)
		}
	}
}
