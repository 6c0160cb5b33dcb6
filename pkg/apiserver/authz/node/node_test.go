package node

import (
	"context"
	"log/slog"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
)

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.PodSpec{
		NodeName: node, ServiceAccountName: "sa", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		InitContainers: []corev1.Container{
			{EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "from"}}}}}},
		Containers: []corev1.Container{
			{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "key"}}}}}}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "vol"}}},
			{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
			{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}},
		}}}
}

// pods is a source that tells that it has told all once it may.
type pods struct{ may <-chan struct{} }

func (p pods) Watch(context.Context, string, storage.WatchOptions) (storage.Watch, error) {
	return &opened{may: p.may}, nil
}

type opened struct {
	may  <-chan struct{}
	told bool
}

func (o *opened) Next(ctx context.Context) ([]storage.Event, error) {
	may := o.may
	if o.told {
		may = nil
	}
	select {
	case <-may:
		o.told = true
		return []storage.Event{{Type: storage.Bookmark, Item: &storage.Item{}, InitialEnd: true}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *opened) Stop() {}

// start runs an Authorizer until the test ends, and returns what to call for it to know all pods.
func start(t *testing.T, rules ...rbacv1.PolicyRule) (a *Authorizer, sync func()) {
	may := make(chan struct{})
	none := make(chan struct{})
	close(none)
	a = New(Config{Pods: follow.Resource{Source: pods{may}}, Volumes: follow.Resource{Source: pods{none}},
		Attachments: follow.Resource{Source: pods{none}}, Slices: follow.Resource{Source: pods{none}},
		Requests: follow.Resource{Source: pods{none}},
		Log:      slog.New(slog.DiscardHandler), Rules: rules})
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a, func() {
		close(may)
		for _, f := range a.followers {
			<-f.Synced()
		}
	}
}

// Until all pods are known, a node is refused what only pods that are not known yet give a right to, and told why.
func TestAuthorizeBeforeSync(t *testing.T) {
	t.Parallel()
	a, sync := start(t)
	a.graph.Put("/registry/pods/ns/p", newPod("p", "n1"))
	get := func(name string) (authz.Decision, string) {
		d, reason, err := a.Authorize(t.Context(),
			authz.Attributes{User: &request.User{Name: "system:node:n1", Groups: []string{request.GroupNodes}},
				Info: request.Info{IsResource: true, Verb: "get", Resource: "secrets", Namespace: "ns", Name: name}})
		if err != nil {
			t.Error(err)
		}
		return d, reason
	}
	if d, reason := get("later"); a.HasSynced() || d != authz.NoOpinion ||
		reason != "the pods of node 'n1' are not known yet" {
		t.Errorf("before the sync (%v): %v %q", a.HasSynced(), d, reason)
	}
	if d, _ := get("vol"); d != authz.Allow {
		t.Errorf("what a known pod needs: %v", d)
	}
	sync()
	if d, reason := get("later"); !a.HasSynced() || d != authz.NoOpinion ||
		reason != "no relationship found between node 'n1' and this object" {
		t.Errorf("after the sync (%v): %v %q", a.HasSynced(), d, reason)
	}
}

// The reasons are what kube-apiserver v1.36 answers.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	a, sync := start(t,
		rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""},
			Resources: []string{"services", "nodes", "pods", "secrets"}},
		rbacv1.PolicyRule{Verbs: []string{"create", "patch"}, APIGroups: []string{""},
			Resources: []string{"nodes", "pods", "persistentvolumeclaims/status"}})
	sync()
	a.graph.Put("/registry/pods/ns/p", newPod("p", "n1"))
	a.graph.Put("/registry/pods/ns/q", newPod("q", "n2"))
	a.graph.Put("/registry/pods/ns/waiting", newPod("waiting", ""))
	const unrelated = "no relationship found between node 'n1' and this object"
	res := func(verb, resource, sub, ns, name string) request.Info {
		return request.Info{IsResource: true, Verb: verb, Resource: resource, Subresource: sub, Namespace: ns,
			Name: name}
	}
	leases := func(verb, ns, name string) request.Info {
		i := res(verb, "leases", "", ns, name)
		i.APIGroup = "coordination.k8s.io"
		return i
	}
	csiNode := func(verb, sub, name string) request.Info {
		i := res(verb, "csinodes", sub, "", name)
		i.APIGroup = "storage.k8s.io"
		return i
	}
	attachment := func(name string) request.Info {
		i := res("get", "volumeattachments", "", "", name)
		i.APIGroup = "storage.k8s.io"
		return i
	}
	bound := func(name, claim, secret string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				NodeStageSecretRef: &corev1.SecretReference{Namespace: "csi", Name: secret}}}}}
	}
	v := volumes{a.graph}
	v.Put("/registry/persistentvolumes/pv", bound("pv", "claim", "stage"))
	v.Put("/registry/persistentvolumes/other", bound("other", "x", "other"))
	v.Put("/registry/persistentvolumes/free", &corev1.PersistentVolume{})
	v.Put("/registry/persistentvolumes/released", bound("released", "claim", "other"))
	v.Put("/registry/persistentvolumes/released", &corev1.PersistentVolume{})
	attached := func(name, node string) {
		named{a.graph, "volumeattachments", false, attachedTo}.Put("/registry/volumeattachments/"+name,
			&storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: node}})
	}
	lists := named{a.graph, "resourceslices", false, devicesOf}
	lists.Put("/registry/resourceslices/mine",
		&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: new("n1")}})
	lists.Put("/registry/resourceslices/theirs",
		&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: new("n2")}})
	lists.Put("/registry/resourceslices/all",
		&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{AllNodes: new(true)}})
	lists.Put("/registry/resourceslices/gone",
		&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: new("n1")}})
	lists.Delete("/registry/resourceslices/gone")
	slice := func(verb, sub, name, selector string) request.Info {
		i := res(verb, "resourceslices", sub, "", name)
		i.APIGroup, i.FieldSelector = "resource.k8s.io", selector
		return i
	}
	const selectSlices = "can only list/watch/deletecollection resourceslices with nodeName field selector"
	attached("va", "n1")
	attached("vb", "n2")
	selecting := func(selector string) request.Info {
		i := res("list", "pods", "", "", "")
		i.FieldSelector = selector
		return i
	}
	for name, c := range map[string]struct {
		info   request.Info
		want   bool
		reason string
	}{
		"make a slice":         {slice("create", "", "", ""), true, ""},
		"its slice":            {slice("delete", "", "mine", ""), true, ""},
		"another's slice":      {slice("delete", "", "theirs", ""), false, unrelated},
		"a slice of all nodes": {slice("update", "", "all", ""), false, unrelated},
		"a slice that is gone": {slice("get", "", "gone", ""), false, unrelated},
		"its slices":           {slice("deletecollection", "", "", "spec.nodeName=n1"), true, ""},
		"another's slices":     {slice("deletecollection", "", "", "spec.nodeName=n2"), false, selectSlices},
		"all slices":           {slice("list", "", "", ""), false, selectSlices},
		"part of a slice": {slice("get", "status", "mine", ""), false,
			"cannot authorize ResourceSlice subresources"},
		"a volume's secret":       {res("get", "secrets", "", "ns", "vol"), true, ""},
		"a pull secret":           {res("watch", "secrets", "", "ns", "pull"), true, ""},
		"a variable's secret":     {res("get", "secrets", "", "ns", "key"), true, ""},
		"a variable's config map": {res("get", "configmaps", "", "ns", "from"), true, ""},
		"a projected config map":  {res("get", "configmaps", "", "ns", "kube-root-ca.crt"), true, ""},
		"another secret":          {res("get", "secrets", "", "ns", "x"), false, unrelated},
		"of another namespace":    {res("get", "secrets", "", "other", "vol"), false, unrelated},
		"all secrets":             {res("list", "secrets", "", "ns", ""), false, "No Object name found"},
		"all secrets everywhere": {res("list", "secrets", "", "", ""), false,
			"can only read namespaced object of this type"},
		"change a secret": {res("update", "secrets", "", "ns", "vol"), false,
			"can only read resources of this type"},
		"a token":               {res("create", "serviceaccounts", "token", "ns", "sa"), true, ""},
		"another's token":       {res("create", "serviceaccounts", "token", "ns", "other"), false, unrelated},
		"its pod":               {res("get", "pods", "", "ns", "p"), true, ""},
		"another's pod":         {res("get", "pods", "", "ns", "q"), false, unrelated},
		"its pod, listed":       {res("list", "pods", "", "ns", "p"), true, ""},
		"another's pod, listed": {res("list", "pods", "", "ns", "q"), false, unrelated},
		"all pods": {res("list", "pods", "", "", ""), false,
			"can only list/watch pods with spec.nodeName field selector"},
		"its pods": {selecting("spec.nodeName=n1"), true, ""},
		"another's pods": {selecting("spec.nodeName=n2"), false,
			"can only list/watch pods with spec.nodeName field selector"},
		"all but its pods": {selecting("spec.nodeName!=n1"), false,
			"can only list/watch pods with spec.nodeName field selector"},
		"its node": {res("get", "nodes", "", "", "n1"), true, ""},
		"another node": {res("get", "nodes", "", "", "n2"), false,
			"node 'n1' cannot read 'n2', only its own Node object"},
		"register":  {res("create", "nodes", "", "", ""), true, ""},
		"its lease": {leases("update", "kube-node-lease", "n1"), true, ""},
		"another's lease": {leases("update", "kube-node-lease", "n2"), false,
			"can only access node lease with the same name as the requesting node"},
		"a lease elsewhere": {leases("create", "default", ""), false,
			`can only access leases in the "kube-node-lease" system namespace`},
		"its drivers": {csiNode("update", "", "n1"), true, ""},
		"another's drivers": {csiNode("update", "", "n2"), false,
			"can only access CSINode with the same name as the requesting node"},
		"its drivers' health": {csiNode("patch", "status", "n1"), false,
			"CSINode status access requires CSIVolumeHealth feature"},
		"a claim's growth":       {res("patch", "persistentvolumeclaims", "status", "ns", "claim"), true, ""},
		"another claim's growth": {res("patch", "persistentvolumeclaims", "status", "ns", "x"), false, unrelated},
		"read a claim's growth": {res("get", "persistentvolumeclaims", "status", "ns", "claim"), false,
			"can only get/update/patch this type"},
		"its pod's volume":         {res("get", "persistentvolumes", "", "", "pv"), true, ""},
		"another's volume":         {res("get", "persistentvolumes", "", "", "other"), false, unrelated},
		"a volume without a claim": {res("get", "persistentvolumes", "", "", "free"), false, unrelated},
		"a volume given back":      {res("get", "persistentvolumes", "", "", "released"), false, unrelated},
		"all volumes": {res("list", "persistentvolumes", "", "", ""), false,
			"can only get individual resources of this type"},
		"its volume's secret":        {res("get", "secrets", "", "csi", "stage"), true, ""},
		"another volume's secret":    {res("get", "secrets", "", "csi", "other"), false, unrelated},
		"an attachment to it":        {attachment("va"), true, ""},
		"another's attachment":       {attachment("vb"), false, unrelated},
		"services, as the role says": {res("list", "services", "", "", ""), true, ""},
		"what no role says":          {res("delete", "nodes", "", "", "n1"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := &request.User{Name: "system:node:n1", Groups: []string{request.GroupNodes}}
			d, reason, err := a.Authorize(context.Background(), authz.Attributes{User: user, Info: c.info})
			if (d == authz.Allow) != c.want || reason != c.reason || err != nil {
				t.Errorf("got %v %q %v", d, reason, err)
			}
			if d, _, _ := a.Authorize(context.Background(),
				authz.Attributes{User: &request.User{Name: "system:node:n1"}, Info: c.info}); d != authz.NoOpinion {
				t.Error("somebody with a node's name and not of its group got an answer")
			}
		})
	}
}

// A mirror pod is written by the node itself: what it refers to is not opened to the node, or the node could read every
// secret.
func TestMirrorPodsGiveNoRights(t *testing.T) {
	t.Parallel()
	a := New(Config{Log: slog.New(slog.DiscardHandler)})
	mirror := newPod("m", "n1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	mirror.Spec.Volumes = append(mirror.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{
			CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "csi"}}}})
	a.graph.Put("/registry/pods/ns/m", mirror)
	for o, want := range map[object]bool{
		{"pods", "ns", "m"}: true, {"secrets", "ns", "csi"}: false, {"secrets", "ns", "pull"}: false,
		{"secrets", "ns", "vol"}:     false,
		{"configmaps", "ns", "from"}: false, {"serviceaccounts", "ns", "sa"}: false,
	} {
		if yes, _ := a.graph.needs("n1", o); yes != want {
			t.Errorf("%v: %v", o, yes)
		}
	}
}

func TestGraphForgets(t *testing.T) {
	t.Parallel()
	g := newGraph()
	secret := object{"secrets", "ns", "vol"}
	g.Put("p", newPod("p", "n1"))
	g.Put("q", newPod("q", "n1"))
	g.Delete("p")
	if yes, _ := g.needs("n1", secret); !yes {
		t.Error("the other pod still needs it")
	}
	g.Put("q", newPod("q", "n2")) // a new pod of the same name, bound elsewhere
	if yes, _ := g.needs("n1", secret); yes {
		t.Error("no pod on n1 needs it")
	}
	g.Delete("q")
	if len(g.nodes) != 0 || len(g.pods) != 0 {
		t.Errorf("left over: %v %v", g.nodes, g.pods)
	}
}

// A node may ask a moment before the news of its pod has arrived.
func TestAuthorizeWaitsForTheNews(t *testing.T) {
	t.Parallel()
	a := New(Config{Log: slog.New(slog.DiscardHandler)})
	_, changed := a.graph.needs("n1", object{})
	go a.graph.Put("p", newPod("p", "n1"))
	_, ok := a.related(context.Background(), "n1", object{"secrets", "ns", "vol"})
	<-changed
	if !ok {
		t.Error("got no")
	}
}

// TestPodCertificateRequests: the reasons are those of a kube-apiserver v1.37.2.
func TestPodCertificateRequests(t *testing.T) {
	t.Parallel()
	a, sync := start(t, rbacv1.PolicyRule{Verbs: []string{"create", "get", "list", "watch"},
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"podcertificaterequests"}})
	sync()
	requests := named{a.graph, "podcertificaterequests", true, requestedBy}
	for key, node := range map[string]string{"ns/mine": "n1", "ns/theirs": "n2", "ns/gone": "n1", "other/mine": "n2"} {
		requests.Put("/registry/podcertificaterequests/"+key, &certificatesv1.PodCertificateRequest{
			Spec: certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(node)}})
	}
	requests.Delete("/registry/podcertificaterequests/ns/gone")
	const unrelated = "no relationship found between node 'n1' and this object"
	const unselected = "can only list/watch podcertificaterequests with nodeName field selector"
	const noStatus = "nodes may not access the status subresource of PodCertificateRequests"
	for _, c := range []struct{ verb, sub, ns, name, selector, reason string }{
		{verb: "create", ns: "ns"}, {verb: "get", ns: "ns", name: "mine"},
		{verb: "get", ns: "ns", name: "theirs", reason: unrelated},
		{verb: "get", ns: "ns", name: "gone", reason: unrelated},
		{verb: "get", ns: "other", name: "mine", reason: unrelated},
		{verb: "list", selector: "spec.nodeName=n1"}, {verb: "list", ns: "ns", reason: unselected},
		{verb: "list", ns: "ns", name: "mine", selector: "metadata.name=mine", reason: unselected},
		{verb: "watch", ns: "ns", name: "mine", selector: "metadata.name=mine,spec.nodeName=n1"},
		{verb: "watch", ns: "ns", selector: "spec.nodeName=n2", reason: unselected},
		{verb: "patch", ns: "ns", name: "mine", reason: "nodes may not patch podcertificaterequests"},
		{verb: "delete", ns: "ns", name: "mine", reason: "nodes may not delete podcertificaterequests"},
		{verb: "deletecollection", ns: "ns", reason: "nodes may not deletecollection podcertificaterequests"},
		{verb: "get", sub: "status", ns: "ns", name: "mine", reason: noStatus},
		{verb: "patch", sub: "status", ns: "ns", name: "mine", reason: noStatus},
	} {
		d, reason, err := a.Authorize(t.Context(), authz.Attributes{
			User: &request.User{Name: "system:node:n1", Groups: []string{request.GroupNodes}},
			Info: request.Info{IsResource: true, Verb: c.verb, APIGroup: "certificates.k8s.io",
				Resource: "podcertificaterequests", Subresource: c.sub, Namespace: c.ns, Name: c.name,
				FieldSelector: c.selector}})
		if err != nil || (d == authz.Allow) != (c.reason == "") || reason != c.reason {
			t.Errorf("%+v: %v %q %v", c, d, reason, err)
		}
	}
}
