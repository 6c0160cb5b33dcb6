// Package diff shows what "kubectl apply" of the same files would change: the live objects beside what the server
// answers to the patch as a dry run, both given to a diff program.
package diff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// manager is the field manager of the dry runs. It is apply's own, so that they answer as apply would.
const manager = "kubectl-client-side-apply"

// Options is one run of "kubectl diff".
type Options struct {
	write.Base
	files       resource.Files
	serverSide  write.ServerSide
	selector    string
	prune       write.Prune
	showManaged bool
	showSecrets bool
	// concurrency is how many objects are asked for at once, at least 1.
	concurrency int
	program     program
}

// NewCommand returns "kubectl diff".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags(manager), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "diff -f FILENAME",
		Short: "Diff the live version against a would-be applied version",
		Long: "Diff configurations specified by file name or stdin between the current online configuration, and the configuration as it would be if applied.\n\n" +
			" The program of $KUBECTL_EXTERNAL_DIFF compares (\"diff -u -N\" by default); it gets the words after it that are of letters, digits, - and = only.\n\n" +
			" Exit status: 0 No differences were found. 1 Differences were found. >1 kubectl or diff failed with an error.",
		Example: "\n  # Diff resources included in pod.json\n  kubectl diff -f pod.json\n\n  # Diff file read from stdin\n  cat service.yaml | kubectl diff -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cli.RunE(f, o)(cmd, args)
			if exit := (*cli.ExitError)(nil); err == nil || errors.As(err, &exit) {
				return err
			}
			return &cli.ExitError{Code: 2, Err: err} // 1 means differences
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &cli.ExitError{Code: 2, Err: cli.UsageErrorf(cmd, "%v", err)}
	})
	set := cmd.Flags()
	o.files.AddFlags(set, "contains the configuration to diff")
	o.AddManager(set)
	o.serverSide.AddFlags(set)
	set.StringVarP(&o.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	o.prune.AddFlags(set, "Include resources that would be deleted by pruning. Can be used with -l and default shows all resources would be pruned")
	set.BoolVar(&o.showSecrets, "show-secrets", false, "If true, do not mask secret values in the diff.")
	set.IntVar(&o.concurrency, "concurrency", 1,
		"Number of objects to process in parallel when diffing against the live version. Larger number = faster, but more memory, I/O and CPU over that shorter period of time.")
	set.BoolVar(&o.showManaged, "show-managed-fields", false, "If true, include managed fields in the diff.")
	return cmd
}

// Complete gets the client and the diff program.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
	}
	if o.files.Empty() {
		return write.NoFiles()
	}
	program, leftOut := parseProgram(os.Getenv("KUBECTL_EXTERNAL_DIFF"))
	o.program = program
	for _, word := range leftOut {
		fmt.Fprintf(o.ErrOut, "Warning: KUBECTL_EXTERNAL_DIFF: the argument %q is left out: it has characters other than letters, digits, - and =\n", word)
	}
	o.serverSide.Complete(cmd.Flags(), o.Flags)
	if err := o.CompleteWith(f); err != nil {
		return err
	}
	return o.prune.Complete(o.Client)
}

// Validate refuses flags that do not go together.
func (o *Options) Validate() error { return o.serverSide.Validate() }

// Run writes both versions of every object and compares them.
func (o *Options) Run(ctx context.Context) (err error) {
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit, LabelSelector: o.selector,
	})
	if err != nil {
		return err
	}
	live, err := os.MkdirTemp("", "LIVE-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(live)) }()
	merged, err := os.MkdirTemp("", "MERGED-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(merged)) }()
	namespaces, uids := sets.New[string](), sets.New[types.UID]()
	writers, written := errgroup.WithContext(ctx)
	writers.SetLimit(max(o.concurrency, 1))
	for _, i := range infos {
		writers.Go(func() error {
			if written.Err() != nil {
				return nil // what comes after an error is left
			}
			return o.writeBoth(written, i, live, merged)
		})
	}
	if err := writers.Wait(); err != nil {
		return err
	}
	for _, i := range infos {
		if i.Namespaced() {
			namespaces.Insert(i.Namespace)
		}
		uids.Insert(i.Object.GetUID())
	}
	if o.prune.On {
		gone, err := o.prune.Find(ctx, o.Client, namespaces, o.selector, uids)
		if err != nil {
			return err
		}
		for _, i := range gone {
			if err := o.writeGone(i, live); err != nil {
				return err
			}
		}
	}
	return o.program.run(ctx, o.Raw(), live, merged) // the program may colour
}

// writeBoth writes one object's two versions. A new object has only the merged version, which the diff program shows as
// an added file.
func (o *Options) writeBoth(ctx context.Context, i *resource.Info, live, merged string) error {
	versions, kept := o.versions, keepRecord
	if o.serverSide.On {
		versions, kept = o.serverSideVersions, func(_, _ *unstructured.Unstructured) {} // the server keeps the record
	}
	before, after, err := versions(ctx, i)
	if err != nil {
		return err
	}
	kept(before, after)
	if !o.showSecrets && isSecret(i) {
		mask(before, after)
	}
	if before != nil {
		if err := o.write(filepath.Join(live, fileName(i)), before); err != nil {
			return err
		}
	}
	return o.write(filepath.Join(merged, fileName(i)), after)
}

// writeGone writes an object that pruning would delete, all of it: there is nothing to compare it with.
func (o *Options) writeGone(i *resource.Info, live string) error {
	if !o.showSecrets && isSecret(i) {
		mask(i.Object, nil)
	}
	return o.writeWhole(filepath.Join(live, fileName(i)), i.Object)
}

func isSecret(i *resource.Info) bool {
	return i.Mapping.GroupVersionKind.GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// keepRecord gives after the annotation of before with the last applied configuration. kubectl changes this record with
// every apply; that is not a difference between the objects.
func keepRecord(before, after *unstructured.Unstructured) {
	var had map[string]string
	if before != nil {
		had = before.GetAnnotations()
	}
	annotations := after.GetAnnotations()
	delete(annotations, write.LastAppliedAnnotation)
	if v, ok := had[write.LastAppliedAnnotation]; ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[write.LastAppliedAnnotation] = v
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	after.SetAnnotations(annotations)
}

// serverSideVersions returns the live object, nil if there is none, and what server-side apply would make of it.
func (o *Options) serverSideVersions(ctx context.Context, i *resource.Info) (before, after *unstructured.Unstructured,
	err error) {
	config, err := resource.Encode(i.Object)
	if err != nil {
		return nil, nil, write.WithSource("applying", i.Source, err)
	}
	switch err := i.Get(ctx); {
	case err == nil:
		before = i.Object.DeepCopy()
	case !apierrors.IsNotFound(err):
		return nil, nil, err
	}
	err = o.serverSide.Apply(ctx, i, config,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: o.Manager})
	return before, i.Object, err
}

// versions returns the live object, nil if there is none, and what client-side apply would make of it.
func (o *Options) versions(ctx context.Context, i *resource.Info) (before, after *unstructured.Unstructured,
	err error) {
	want, err := write.Want(i.Object)
	if err != nil {
		return nil, nil, write.WithSource("applying", i.Source, err)
	}
	err = i.Get(ctx)
	if apierrors.IsNotFound(err) {
		i.Object = want
		err := i.Create(ctx, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: o.Manager})
		return nil, i.Object, write.WithSource("creating", i.Source, err)
	}
	if err != nil {
		return nil, nil, err
	}
	before = i.Object.DeepCopy()
	original, err := write.LastApplied(before)
	if err != nil {
		return nil, nil, err
	}
	modified, err := resource.Encode(want)
	if err != nil {
		return nil, nil, err
	}
	current, err := resource.Encode(before)
	if err != nil {
		return nil, nil, err
	}
	patch, kind, err := write.Diff3(i.Mapping.GroupVersionKind, original, modified, current, true)
	if err != nil {
		return nil, nil, write.WithSource("merging", i.Source, err)
	}
	if string(patch) == "{}" {
		return before, before.DeepCopy(), nil
	}
	err = i.Patch(ctx, kind, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: o.Manager})
	return before, i.Object, write.WithSource("patching", i.Source, err)
}

// fileName returns GROUP.VERSION.KIND.NAMESPACE.NAME, so that the diff program pairs the files of both directories. A /
// becomes _, so that no name leads out of the directory.
func fileName(i *resource.Info) string {
	gvk := i.Mapping.GroupVersionKind
	parts := []string{gvk.Version, gvk.Kind, i.Namespace, i.Name}
	if gvk.Group != "" {
		parts = append([]string{gvk.Group}, parts...)
	}
	return strings.ReplaceAll(strings.Join(parts, "."), "/", "_")
}

func (o *Options) write(path string, u *unstructured.Unstructured) error {
	if !o.showManaged {
		u.SetManagedFields(nil)
	}
	return o.writeWhole(path, u)
}

// writeWhole writes a new file that only the user can read, as it may hold a Secret.
func (o *Options) writeWhole(path string, u *unstructured.Unstructured) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(printers.YAML(u, f), f.Close())
}
