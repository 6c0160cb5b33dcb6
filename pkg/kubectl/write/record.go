package write

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/resource"
)

// ChangeCause is the annotation that says by which command an object became what it is.
const ChangeCause = "kubernetes.io/change-cause"

// Recorder is the old flag --record: the command line is kept in the annotation ChangeCause of what it changes.
type Recorder struct {
	on  bool
	cmd *cobra.Command
}

// AddRecord adds the flag, hidden as upstream hides it.
func (r *Recorder) AddRecord(cmd *cobra.Command) {
	r.cmd = cmd
	set := cmd.Flags()
	set.BoolVar(&r.on, "record", false,
		"Record current kubectl command in the resource annotation. If set to false, do not record the command. If set to true, record the command. If not set, default to updating the existing annotation value only if one already exists.")
	_ = set.MarkDeprecated("record", "--record will be removed in the future") // the flag is there
}

// cause is the command line: the command, its arguments and then its flags.
func (r *Recorder) cause() string {
	words := append([]string{r.cmd.CommandPath()}, r.cmd.Flags().Args()...)
	r.cmd.Flags().Visit(func(f *pflag.Flag) { words = append(words, "--"+f.Name+"="+f.Value.String()) })
	return strings.Join(words, " ")
}

// Record keeps the command line in obj, if the user wants it.
func (r *Recorder) Record(obj runtime.Object) error {
	if !r.on {
		return nil
	}
	a, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	annotations := maps.Clone(a.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ChangeCause] = r.cause()
	a.SetAnnotations(annotations)
	return nil
}

// RecordPatch keeps the command line in an object that was changed already, by a patch of its own.
func (f *Flags) RecordPatch(ctx context.Context, i *resource.Info) error {
	if !f.on || f.DryRun != DryRunNone {
		return nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{ChangeCause: f.cause()}}})
	if err != nil {
		return err
	}
	return i.Patch(ctx, types.MergePatchType, patch, f.PatchOptions())
}
