package devices

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// classTable is the device classes, and the extended resources that they give. Devices.mu guards it.
type classTable struct {
	byName map[string]*resourcev1.DeviceClass
	// giving has the classes of each resource. The first one counts.
	giving map[corev1.ResourceName][]*resourcev1.DeviceClass
	// epoch changes with every class: what any node can give a claim may depend on it.
	epoch int64
}

func newClassTable() classTable {
	return classTable{byName: map[string]*resourcev1.DeviceClass{},
		giving: map[corev1.ResourceName][]*resourcev1.DeviceClass{}}
}

// set adds or replaces a class.
func (t *classTable) set(c *resourcev1.DeviceClass) {
	t.epoch++
	t.file(t.byName[c.Name], c)
	t.byName[c.Name] = c
}

// remove forgets a class.
func (t *classTable) remove(name string) {
	t.epoch++
	t.file(t.byName[name], nil)
	delete(t.byName, name)
}

// file replaces a class in giving; nil is no class. It keeps the newest class of a resource first, and of classes that
// were made in the same second the one whose name comes first.
func (t *classTable) file(old, now *resourcev1.DeviceClass) {
	if old != nil {
		for _, name := range resourcesOf(old) {
			left := slices.DeleteFunc(t.giving[name], func(c *resourcev1.DeviceClass) bool {
				return c.Name == old.Name
			})
			if t.giving[name] = left; len(left) == 0 {
				delete(t.giving, name)
			}
		}
	}
	if now != nil {
		for _, name := range resourcesOf(now) {
			t.giving[name] = append(t.giving[name], now)
			slices.SortFunc(t.giving[name], func(a, b *resourcev1.DeviceClass) int {
				return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
			})
		}
	}
}

// asks are the resources that devices can give the pod, by name.
func (t *classTable) asks(pod *model.PodInfo) (out []ask) {
	for name, n := range pod.Requests.Scalar {
		if classes := t.giving[name]; n > 0 && len(classes) > 0 {
			out = append(out, ask{name, classes[0].Name})
		}
	}
	slices.SortFunc(out, func(a, b ask) int { return strings.Compare(string(a.resource), string(b.resource)) })
	return out
}

// check refuses a claim that asks for devices of a class that does not exist.
func (t *classTable) check(c *resourcev1.ResourceClaim) *framework.Status {
	missing := func(request, class string) *framework.Status {
		if t.byName[class] == nil {
			return refuse("request %s: device class %s does not exist", request, class)
		}
		return nil
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			if st := missing(r.Name, r.Exactly.DeviceClassName); st != nil {
				return st
			}
		}
		for k := range r.FirstAvailable {
			if st := missing(resourceclaim.CreateSubRequestRef(r.Name, r.FirstAvailable[k].Name),
				r.FirstAvailable[k].DeviceClassName); st != nil {
				return st
			}
		}
	}
	return nil
}

// lister shows the library the classes of one moment.
type lister map[string]*resourcev1.DeviceClass

// List implements structured.DeviceClassLister.
func (l lister) List() ([]*resourcev1.DeviceClass, error) {
	out := make([]*resourcev1.DeviceClass, 0, len(l))
	for _, c := range l {
		out = append(out, c)
	}
	return out, nil
}

// Get implements structured.DeviceClassLister.
func (l lister) Get(name string) (*resourcev1.DeviceClass, error) {
	if c := l[name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclass"), name)
}
