package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// serviceCIDR makes the ServiceCIDR of the flags, and says that addresses can be taken of it before any controller runs
// that could. A second range that the flags have by now is added; another difference is not mended, as services have
// addresses of the old range.
func (b *Bootstrap) serviceCIDR(ctx context.Context) error {
	var cidrs []string
	for _, r := range b.cfg.Service.Ranges {
		cidrs = append(cidrs, r.Masked().String())
	}
	gr := networkingv1.Resource("servicecidrs")
	want := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	err := b.ensure(ctx, gr, want, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*networkingv1.ServiceCIDR)
		if !ok {
			return false, fmt.Errorf("%T is not a ServiceCIDR", obj)
		}
		if slices.Equal(have.Spec.CIDRs, cidrs) {
			return false, nil
		}
		if len(have.Spec.CIDRs) == 1 && len(cidrs) == 2 && have.Spec.CIDRs[0] == cidrs[0] {
			have.Spec.CIDRs = cidrs
			return true, nil
		}
		b.cfg.Log.Warn("the default ServiceCIDR does not match the flag", "has", have.Spec.CIDRs, "flag", cidrs)
		return false, nil
	})
	if err != nil {
		return err
	}
	_, err = b.cfg.Stores.Store(gr).Update(ctx, "", serviceName, "status",
		func(current runtime.Object) (runtime.Object, error) {
			c, ok := current.(*networkingv1.ServiceCIDR)
			if !ok {
				return nil, fmt.Errorf("%T is not a ServiceCIDR", current)
			}
			// the controller's word is the later one
			if meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady) != nil {
				return c, nil
			}
			meta.SetStatusCondition(&c.Status.Conditions,
				metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue,
					Message:            "Kubernetes default Service CIDR is ready",
					LastTransitionTime: metav1.NewTime(time.Now())})
			return c, nil
		}, &metav1.UpdateOptions{})
	return wrap(err, "updating", gr, want)
}
