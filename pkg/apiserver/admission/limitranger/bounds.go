package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// violations returns how the pod breaks the bounds of l: each container those of type Container, all of them together,
// or what the pod says for them, those of type Pod.
func violations(pod *corev1.Pod, l *corev1.LimitRange) []error {
	var errs []error
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for j := range list {
					errs = append(errs, check(item, list[j].Resources.Requests, list[j].Resources.Limits)...)
				}
			}
		case corev1.LimitTypePod:
			opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
			errs = append(errs, check(item, resourcehelper.PodRequests(pod, opts),
				resourcehelper.PodLimits(pod, opts))...)
		}
	}
	return errs
}

// claimViolations returns how the claim breaks the bounds of l: those of type PersistentVolumeClaim are for what it
// requests.
func claimViolations(c *corev1.PersistentVolumeClaim, l *corev1.LimitRange) []error {
	var errs []error
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type == corev1.LimitTypePersistentVolumeClaim {
			asked := c.Spec.Resources.Requests
			errs = append(errs, check(&corev1.LimitRangeItem{Type: item.Type, Min: item.Min}, asked, nil)...)
			errs = append(errs, checkMost(item, asked)...)
		}
	}
	return errs
}

// checkMost holds requests against an item's maxima.
func checkMost(item *corev1.LimitRangeItem, requests corev1.ResourceList) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		b := newBound(item.Type, name, item.Max[name], requests, nil)
		if said := fmt.Sprintf("maximum %s usage per %s is %s", b.name, b.kind, b.value.String()); !b.requests {
			errs = append(errs, fmt.Errorf("%s.  No request is specified", said))
		} else if b.request.Cmp(b.value) > 0 {
			errs = append(errs, fmt.Errorf("%s, but request is %s", said, b.request.String()))
		}
	}
	return errs
}

// check holds requests and limits against one item. The names are sorted, so that the same pod gets the same message
// each time.
func check(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []error {
	var errs []error
	for _, rule := range []struct {
		bounds corev1.ResourceList
		verify func(bound) error
	}{{item.Min, bound.min}, {item.Max, bound.max}, {item.MaxLimitRequestRatio, bound.ratio}} {
		for _, name := range slices.Sorted(maps.Keys(rule.bounds)) {
			if err := rule.verify(newBound(item.Type, name, rule.bounds[name], requests, limits)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// bound is one amount of a limit range and what is held against it. A missing request or limit breaks a minimum or
// maximum: by then the plug-in has filled in the defaults, so nothing will set it any more.
type bound struct {
	kind              corev1.LimitType
	name              corev1.ResourceName
	value             resource.Quantity
	request, limit    resource.Quantity
	requests, limited bool // whether request and limit were given
}

func newBound(kind corev1.LimitType, name corev1.ResourceName, value resource.Quantity, requests,
	limits corev1.ResourceList) bound {
	b := bound{kind: kind, name: name, value: value}
	b.request, b.requests = requests[name]
	b.limit, b.limited = limits[name]
	return b
}

func (b bound) min() error {
	said := fmt.Sprintf("minimum %s usage per %s is %s", b.name, b.kind, b.value.String())
	switch {
	case !b.requests:
		return fmt.Errorf("%s.  No request is specified", said)
	case b.request.Cmp(b.value) < 0:
		return fmt.Errorf("%s, but request is %s", said, b.request.String())
	case b.limited && b.limit.Cmp(b.value) < 0:
		return fmt.Errorf("%s, but limit is %s", said, b.limit.String())
	}
	return nil
}

func (b bound) max() error {
	said := fmt.Sprintf("maximum %s usage per %s is %s", b.name, b.kind, b.value.String())
	switch {
	case !b.limited:
		return fmt.Errorf("%s.  No limit is specified", said)
	case b.limit.Cmp(b.value) > 0:
		return fmt.Errorf("%s, but limit is %s", said, b.limit.String())
	case b.requests && b.request.Cmp(b.value) > 0:
		return fmt.Errorf("%s, but request is %s", said, b.request.String())
	}
	return nil
}

func (b bound) ratio() error {
	said := fmt.Sprintf("%s max limit to request ratio per %s is %s", b.name, b.kind, b.value.String())
	switch {
	case !b.requests || b.request.IsZero():
		return fmt.Errorf("%s, but no request is specified or request is 0", said)
	case !b.limited || b.limit.IsZero():
		return fmt.Errorf("%s, but no limit is specified or limit is 0", said)
	}
	is := b.limit.AsApproximateFloat64() / b.request.AsApproximateFloat64()
	if is > b.value.AsApproximateFloat64() {
		return fmt.Errorf("%s, but provided ratio is %f", said, is)
	}
	return nil
}
