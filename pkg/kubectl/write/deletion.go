package write

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deletion are the flags of verbs that delete objects: --cascade, --grace-period, --force, --timeout and --wait.
type Deletion struct {
	// Grace is negative where nothing is said. Timeout is 0 without a limit.
	Grace   int
	Force   bool
	Timeout time.Duration
	Wait    bool

	cascade string
}

// AddFlags adds the flags; wait is the default of --wait.
func (d *Deletion) AddFlags(set *pflag.FlagSet, wait bool) {
	set.StringVar(&d.cascade, "cascade", "background",
		`Must be "background", "orphan", or "foreground". Selects the deletion cascading strategy for the dependents (e.g. Pods created by a ReplicationController). Defaults to background.`)
	set.Lookup("cascade").NoOptDefVal = "background"
	set.IntVar(&d.Grace, "grace-period", -1,
		"Period of time in seconds given to the resource to terminate gracefully. Ignored if negative. Set to 1 for immediate shutdown. Can only be set to 0 when --force is true (force deletion).")
	set.BoolVar(&d.Force, "force", false,
		"If true, immediately remove resources from API and bypass graceful deletion. Note that immediate deletion of some resources may result in inconsistency or data loss and requires confirmation.")
	set.BoolVar(&d.Wait, "wait", wait,
		"If true, wait for resources to be gone before returning. This waits for finalizers.")
	set.DurationVar(&d.Timeout, "timeout", 0,
		"The length of time to wait before giving up on a delete, zero means determine a timeout from the size of the object")
}

// Complete reads --cascade; warnings of old values go to w.
func (d *Deletion) Complete(w io.Writer) error {
	switch d.cascade {
	case "background", "foreground", "orphan":
	case "true":
		fmt.Fprintln(w, "warning: --cascade=true is deprecated (boolean value) and can be replaced with --cascade=background.")
		d.cascade = "background"
	case "false":
		fmt.Fprintln(w, "warning: --cascade=false is deprecated (boolean value) and can be replaced with --cascade=orphan.")
		d.cascade = "orphan"
	default:
		return fmt.Errorf(`invalid cascade value (%s). Must be "background", "foreground", or "orphan"`, d.cascade)
	}
	return nil
}

// Options are the options of a DELETE.
func (d *Deletion) Options() metav1.DeleteOptions {
	policy := map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
		"orphan": metav1.DeletePropagationOrphan,
	}[d.cascade]
	opts := metav1.DeleteOptions{PropagationPolicy: &policy}
	if d.Grace >= 0 {
		opts.GracePeriodSeconds = new(int64(d.Grace))
	}
	return opts
}
