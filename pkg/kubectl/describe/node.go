package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"
)

func node(d *describer, n *corev1.Node) error {
	d.line(0, "Name:\t%s\nRoles:\t%s\n", n.Name, roles(n.Labels))
	d.labels(0, "Labels", n.Labels)
	d.annotations(0, n.Annotations)
	d.line(0, "CreationTimestamp:\t%s\n", when(n.CreationTimestamp))
	d.line(0, "Taints:\t")
	if len(n.Spec.Taints) == 0 {
		d.line(0, "<none>\n")
	}
	taints := slices.Clone(n.Spec.Taints)
	slices.SortStableFunc(taints, func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Key, b.Key))
	})
	for i, t := range taints {
		if i > 0 {
			d.line(0, "\t")
		}
		d.line(0, "%s\n", t.ToString())
	}
	d.line(0, "Unschedulable:\t%v\n", n.Spec.Unschedulable)
	writeLease(d, n.Name)
	if len(n.Status.Conditions) > 0 {
		d.line(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n")
		d.line(1, "----\t------\t-----------------\t------------------\t------\t-------\n")
		for _, c := range n.Status.Conditions {
			d.line(1, "%v \t%v \t%s \t%s \t%v \t%v\n", c.Type, c.Status, when(c.LastHeartbeatTime),
				when(c.LastTransitionTime), c.Reason, c.Message)
		}
	}
	d.line(0, "Addresses:\n")
	for _, a := range n.Status.Addresses {
		d.line(1, "%s:\t%s\n", a.Type, a.Address)
	}
	writeAmounts(d.writer, "Capacity", n.Status.Capacity)
	writeAmounts(d.writer, "Allocatable", n.Status.Allocatable)
	writeNodeSlices(d, n.Name)
	writeSystem(d.writer, n)
	return writeLoad(d, n)
}

// Two labels name roles: node-role.kubernetes.io/ROLE, and the older kubernetes.io/role=ROLE.
func roles(l map[string]string) string {
	const prefix = "node-role.kubernetes.io/"
	var out []string
	for _, k := range keys(l) {
		if r, ok := strings.CutPrefix(k, prefix); ok && r != "" {
			out = append(out, r)
		} else if k == "kubernetes.io/role" && l[k] != "" {
			out = append(out, l[k])
		}
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(slices.Sorted(slices.Values(out)), ",")
}

// writeLease writes the node's Lease, its heartbeat. A Lease that cannot be read is a line of its own and no error.
func writeLease(d *describer, name string) {
	m, err := d.client.Mapping("leases.coordination.k8s.io")
	var u *unstructured.Unstructured
	if err == nil {
		u, err = d.client.Get(d.ctx, m, corev1.NamespaceNodeLease, name)
	}
	if err != nil {
		d.line(0, "Lease:\tFailed to get lease: %s\n", err)
		return
	}
	text := func(path ...string) string {
		s, ok, _ := unstructured.NestedString(u.Object, path...)
		if !ok {
			return "<unset>"
		}
		return s
	}
	stamp := func(field string) string {
		var t metav1.MicroTime
		if s := text("spec", field); t.UnmarshalQueryParameter(s) == nil && s != "<unset>" {
			return when(metav1.Time{Time: t.Local()})
		}
		return "<unset>"
	}
	d.line(0, "Lease:\n")
	d.line(1, "HolderIdentity:\t%s\n", text("spec", "holderIdentity"))
	d.line(1, "AcquireTime:\t%s\n", stamp("acquireTime"))
	d.line(1, "RenewTime:\t%s\n", stamp("renewTime"))
}

func writeAmounts(w *writer, title string, l corev1.ResourceList) {
	if len(l) == 0 {
		return
	}
	w.line(0, "%s:\n", title)
	text := map[string]string{}
	for k, q := range l {
		text[string(k)] = q.String()
	}
	for _, k := range keys(text) {
		w.line(1, "%s:\t%s\n", k, text[k])
	}
}

// writeNodeSlices writes the number of slices and devices that drivers offer on the node, by driver and pool. It writes
// nothing if there are none, or if the user may not read them.
func writeNodeSlices(d *describer, name string) {
	all, err := listed[resourcev1.ResourceSlice](d, "resourceslices.resource.k8s.io", "", "spec.nodeName="+name)
	if err != nil || len(all) == 0 {
		return
	}
	type pool struct{ driver, name string }
	slicesOf, devices := map[pool]int{}, map[pool]int{}
	for i := range all {
		p := pool{all[i].Spec.Driver, all[i].Spec.Pool.Name}
		slicesOf[p]++
		devices[p] += len(all[i].Spec.Devices)
	}
	d.line(0, "Node-Local ResourceSlices:\n  Driver\tPool\tSlices\tDevices\n  ------\t----\t------\t-------\n")
	for _, p := range slices.SortedFunc(maps.Keys(slicesOf), func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.name, b.name))
	}) {
		d.line(1, "%s\t%s\t%d\t%d\n", p.driver, p.name, slicesOf[p], devices[p])
	}
}

func writeSystem(w *writer, n *corev1.Node) {
	i := n.Status.NodeInfo
	w.line(0, "System Info:\n")
	for _, f := range [][2]string{
		{"Machine ID", i.MachineID}, {"System UUID", i.SystemUUID}, {"Boot ID", i.BootID},
		{"Kernel Version", i.KernelVersion},
		{"OS Image", i.OSImage}, {"Operating System", i.OperatingSystem}, {"Architecture", i.Architecture},
		{"Container Runtime Version", i.ContainerRuntimeVersion}, {"Kubelet Version", i.KubeletVersion},
	} {
		w.line(1, "%s:\t%s\n", f[0], f[1])
	}
	if n.Spec.PodCIDR != "" {
		w.line(0, "PodCIDR:\t%s\n", n.Spec.PodCIDR)
	}
	if len(n.Spec.PodCIDRs) > 0 {
		w.line(0, "PodCIDRs:\t%s\n", strings.Join(n.Spec.PodCIDRs, ","))
	}
	if n.Spec.ProviderID != "" {
		w.line(0, "ProviderID:\t%s\n", n.Spec.ProviderID)
	}
}

// writeLoad writes the node's pods with their requests and limits, and the sums. Pods that have ended take nothing, so
// they are left out.
func writeLoad(d *describer, n *corev1.Node) error {
	all, err := pods(d, "", metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name +
		",status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return err
	}
	room := n.Status.Allocatable
	if len(room) == 0 {
		room = n.Status.Capacity
	}
	d.line(0, "Non-terminated Pods:\t(%d in total)\n", len(all))
	d.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n")
	d.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n")
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range all {
		p := &all[i]
		add(requests, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
		add(limits, resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{}))
		// A pod's own line includes what it still holds during a resize; the sums do not.
		r := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
		l := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
		d.line(1, "%s\t%s\t\t%s\t%s\t%s\t%s\t%s\n", p.Namespace, p.Name, share(r, room, corev1.ResourceCPU),
			share(l, room, corev1.ResourceCPU),
			share(r, room, corev1.ResourceMemory), share(l, room, corev1.ResourceMemory),
			age(d.now.Sub(p.CreationTimestamp.Time)))
	}
	d.line(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n")
	d.line(1, "Resource\tRequests\tLimits\n  --------\t--------\t------\n")
	usual, extended := loads(room)
	for _, name := range usual {
		d.line(1, "%s\t%s\t%s\n", name, share(requests, room, name), share(limits, room, name))
	}
	for _, name := range extended {
		asked, most := requests[name], limits[name]
		d.line(1, "%s\t%s\t%s\n", name, asked.String(), most.String())
	}
	return nil
}

// loads returns the resources whose use is shown: the three that every node has and huge pages, as parts of the node,
// and then those of device plug-ins, as plain numbers.
func loads(room corev1.ResourceList) (usual, extended []corev1.ResourceName) {
	out := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	var huge, other []corev1.ResourceName
	for _, name := range keys(room) {
		switch {
		case name == corev1.ResourcePods || slices.Contains(out, name):
		case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			huge = append(huge, name)
		default:
			other = append(other, name)
		}
	}
	return slices.Concat(out, huge), other
}

func add(sum, more corev1.ResourceList) {
	for k, q := range more {
		total := sum[k]
		total.Add(q)
		sum[k] = total
	}
}

// share returns an amount and its part of room: "100m (2%)".
func share(l, room corev1.ResourceList, name corev1.ResourceName) string {
	q, all := l[name], room[name]
	if q.Format == "" {
		q = *resource.NewQuantity(0, resource.DecimalSI)
	}
	percent := int64(0)
	if all.MilliValue() > 0 {
		percent = int64(float64(q.MilliValue()) / float64(all.MilliValue()) * 100)
	}
	return fmt.Sprintf("%s (%d%%)", q.String(), percent)
}
