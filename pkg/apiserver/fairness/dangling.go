package fairness

import (
	"context"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/flowcontrol"
	"bonsai/pkg/apiserver/request"
)

// dangling returns the condition Dangling that f should have. found is whether its priority level exists. The time is
// now if the status changes, else that of the last change.
func dangling(f *flowcontrolv1.FlowSchema, found bool, now time.Time) flowcontrolv1.FlowSchemaCondition {
	name := f.Spec.PriorityLevelConfiguration.Name
	c := flowcontrolv1.FlowSchemaCondition{Type: flowcontrolv1.FlowSchemaConditionDangling,
		Status: flowcontrolv1.ConditionFalse, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists",
			name), LastTransitionTime: metav1.NewTime(now)}
	if !found {
		c.Status, c.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		c.Message = fmt.Sprintf(
			"This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object",
			name)
	}
	if was := flowcontrol.Dangling(&f.Status); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// misled returns the schemas whose condition is missing or wrong, by name, each with whether its priority level exists.
// It returns none before the stored configuration is known: every level would seem to be missing.
func (d *Dispatcher) misled() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Synced() {
		return nil
	}
	levels, _ := d.configured()
	out := map[string]bool{}
	for _, f := range d.schemas {
		found := levels[f.Spec.PriorityLevelConfiguration.Name] != nil
		if was := flowcontrol.Dangling(&f.Status); was == nil ||
			*was != dangling(f, found, was.LastTransitionTime.Time) {
			out[f.Name] = found
		}
	}
	return out
}

// writeDangling writes the conditions that are missing or wrong. Only the loop of Run calls it, after each rebuild or
// adjustment, and without mu: a write may wait for storage. A failure is logged, and the next turn of the loop tries
// again. Several servers compute the same conditions, so all but the first change nothing.
func (d *Dispatcher) writeDangling(ctx context.Context) {
	ctx = request.AsServer(ctx)
	for name, found := range d.misled() {
		_, err := d.cfg.Store.Update(ctx, "", name, "status", func(current runtime.Object) (runtime.Object, error) {
			f, ok := current.(*flowcontrolv1.FlowSchema)
			if !ok {
				return nil, fmt.Errorf("%T is not a FlowSchema", current)
			}
			c := dangling(f, found, time.Now())
			if was := flowcontrol.Dangling(&f.Status); was != nil {
				*was = c
			} else {
				f.Status.Conditions = append(f.Status.Conditions, c)
			}
			return f, nil
		}, &metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			d.cfg.Log.Warn("the condition Dangling was not written", "flowschema", name, "err", err)
		}
	}
}
