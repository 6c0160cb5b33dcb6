package devices

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unready is what keeps a claim's devices from being used: a driver or controller has to prepare them first, and says
// so by conditions of the device in the claim's status (device binding conditions, KEP-5007).
type unready struct {
	// failed says which of a device's failure conditions is true, "" if none is.
	failed string
	// waits reports whether one of the binding conditions is not true yet.
	waits bool
}

func unreadyDevices(c *resourcev1.ResourceClaim) (u unready) {
	if c.Status.Allocation == nil {
		return u
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if len(r.BindingConditions) == 0 {
			continue
		}
		conditions := conditionsOf(c, &r)
		for _, t := range r.BindingFailureConditions {
			if meta.IsStatusConditionTrue(conditions, t) {
				u.failed = fmt.Sprintf("device %s/%s/%s: %s", r.Driver, r.Pool, r.Device, t)
				return u
			}
		}
		for _, t := range r.BindingConditions {
			u.waits = u.waits || !meta.IsStatusConditionTrue(conditions, t)
		}
	}
	return u
}

// conditionsOf are those of the device that r gives to c.
func conditionsOf(c *resourcev1.ResourceClaim, r *resourcev1.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range c.Status.Devices {
		d := &c.Status.Devices[i]
		if d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device && same(d.ShareID, r.ShareID) {
			return d.Conditions
		}
	}
	return nil
}

// same reports whether a device's status is of the share that was allocated.
func same[T ~string](status *string, share *T) bool {
	if status == nil || share == nil {
		return status == nil && share == nil
	}
	return *status == string(*share)
}

// Lingers reports whether Await may have to wait.
func (choice *Choice) Lingers() bool {
	return slices.ContainsFunc(choice.claims, func(c chosen) bool {
		return c.allocation != nil &&
			slices.ContainsFunc(c.allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
				return len(r.BindingConditions) > 0
			})
	}) || choice.waits
}

// Await waits until all devices of a bound choice are ready, for at most so long since each was allocated. After an
// error the claims whose devices will not become ready are given back by Unreserve.
func (d *Devices) Await(ctx context.Context, choice *Choice, timeout time.Duration) error {
	for i := range choice.claims {
		if err := d.await(ctx, &choice.claims[i], timeout); err != nil {
			return err
		}
	}
	return nil
}

func (d *Devices) await(ctx context.Context, to *chosen, timeout time.Duration) error {
	for {
		d.mu.Lock()
		c := d.claims[to.key].seen
		changed := d.changedLocked(to.key)
		d.mu.Unlock()
		if c == nil || c.UID != to.uid || c.Status.Allocation == nil {
			return fmt.Errorf("claim %s got deallocated in the meantime", to.key)
		}
		u := unreadyDevices(c)
		switch {
		case u.failed != "":
			to.hopeless = true
			return fmt.Errorf("claim %s: binding failed: %s", to.key, u.failed)
		case !u.waits:
			return nil
		}
		since := d.now()
		if t := c.Status.Allocation.AllocationTimestamp; t != nil {
			since = t.Time
		}
		if err := d.untilChanged(ctx, changed, since.Add(timeout).Sub(d.now())); err != nil {
			to.hopeless = ctx.Err() == nil
			return fmt.Errorf("claim %s: waiting for its devices to be ready: %w", to.key, err)
		}
	}
}

// untilChanged waits for a change, for so long.
func (d *Devices) untilChanged(ctx context.Context, changed <-chan struct{}, left time.Duration) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// changedLocked returns a channel that is closed with the next change of a claim.
func (d *Devices) changedLocked(key string) <-chan struct{} {
	c := d.changes[key]
	if c == nil {
		c = make(chan struct{})
		d.changes[key] = c
	}
	return c
}

func (d *Devices) tellLocked(key string) {
	if c := d.changes[key]; c != nil {
		close(c)
		delete(d.changes, key)
	}
}
