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

// dangling is the condition Dangling as it should be, of a schema whose level is there or not. Its time is that of the
// last change of status.
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

// misled are the schemas whose condition is not as it should be.
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

// tellDangling writes the conditions that are wrong. Several servers find the same, and all but the first have nothing
// to write. What fails is tried again when the configuration changes and when the levels are adjusted.
func (d *Dispatcher) tellDangling(ctx context.Context) {
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
