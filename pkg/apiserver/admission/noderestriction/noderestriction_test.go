package noderestriction

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

type objects map[string]runtime.Object

func (o objects) Get(_ context.Context, _, name string) (runtime.Object, error) {
	if obj := o[name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("things"), name)
}

func (o objects) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return o.Get(ctx, ns, name)
}

// registryAudience lets nodes have tokens of the account sa for the audience registry.
type registryAudience struct{}

func (registryAudience) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.Verb == "request-serviceaccounts-token-audience" && a.Resource == "registry" && a.Name == "sa" &&
		a.IsResource && a.APIGroup == "" && a.User.InGroup(request.GroupNodes) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func node(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node-uid", Labels: labels},
		Spec: corev1.NodeSpec{Taints: taints}}
}

func pod(node string, mirror bool, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p-uid"}, Spec: corev1.PodSpec{NodeName: node}}
	if mirror {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid", Controller: ptr.To(true)}}
	}
	if change != nil {
		change(p)
	}
	return p
}

func withVolume(source corev1.VolumeSource) *corev1.Pod {
	return pod("n1", true, func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} })
}

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	if change != nil {
		change(c)
	}
	return c
}

// tokens is a volume with a token for the API server and one for the audience vault.
func tokens() []corev1.Volume {
	return []corev1.Volume{{Name: "t",
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}}}}}}}
}

func tokenFor(uid string, audiences ...string) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if uid != "" {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "mine"}
		r.Spec.BoundObjectRef.UID = "mine-uid"
		if uid != "mine-uid" {
			r.Spec.BoundObjectRef.UID = "other"
		}
	}
	return r
}

// The messages are what kube-apiserver v1.36 answers.
func TestValidate(t *testing.T) {
	t.Parallel()
	mine := pod("n1", false, func(p *corev1.Pod) {
		p.Name, p.UID, p.Spec.ServiceAccountName, p.Spec.Volumes = "mine", "mine-uid", "sa", tokens()
	})
	mine.Spec.Volumes = append(mine.Spec.Volumes,
		corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d1"}}},
		corev1.Volume{Name: "claimed",
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c2"}}},
		corev1.Volume{Name: "unbound",
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c0"}}},
		corev1.Volume{Name: "made", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		corev1.Volume{Name: "gone", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d0"}}})
	wants := func(audience string) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{
			Spec: storagev1.CSIDriverSpec{
				TokenRequests: []storagev1.TokenRequest{{Audience: "of all"}, {Audience: audience}}}}
	}
	bound := func(volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	of := func(driver string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}}}}
	}
	plug := New(Config{Pods: objects{"mine": mine, "other": pod("n2", false, nil)},
		Nodes:      objects{"n1": node("n1", nil)},
		Claims:     objects{"c0": bound(""), "c2": bound("v2"), "mine-made": bound("v3")},
		Volumes:    objects{"v2": of("d2"), "v3": of("d3")},
		Drivers:    objects{"d1": wants("first"), "d2": wants("second"), "d3": wants("third"), "d4": wants("fourth")},
		Authorizer: registryAudience{}})
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	csi := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	slice := func(node *string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec: resourcev1.ResourceSliceSpec{NodeName: node}}
	}
	projected := func(s corev1.VolumeProjection) *corev1.Pod {
		return withVolume(corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{s}}})
	}
	configured := node("n1", nil)
	configured.Spec.ConfigSource = &corev1.NodeConfigSource{
		ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "ns", Name: "c", UID: "u", KubeletConfigKey: "k"}}
	routed := node("n1", nil)
	routed.Spec.PodCIDRs = []string{"10.244.1.0/25"}
	const create, update, del = admission.Create, admission.Update, admission.Delete
	for name, c := range map[string]struct {
		op       admission.Operation
		resource string
		object   string
		now, old runtime.Object
		err      string
	}{
		"register": {create, "nodes", "",
			node("n1", map[string]string{"foo": "bar", "kubernetes.io/os": "linux", "node.kubernetes.io/x": ""}), nil,
			""},
		"register another": {create, "nodes", "", node("n2", nil), nil,
			`nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`},
		"take a role": {create, "nodes", "", node("n1", map[string]string{"node-role.kubernetes.io/x": ""}),
			nil, `nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: node-role.kubernetes.io/x`},
		"a restricted label": {update, "nodes", "n1",
			node("n1", map[string]string{"node-restriction.kubernetes.io/x": ""}), node("n1", nil),
			`is not allowed to modify labels: node-restriction.kubernetes.io/x`},
		"keep a restricted one": {update, "nodes", "n1", node("n1", map[string]string{"kubernetes.io/foo": "y"}),
			node("n1", map[string]string{"kubernetes.io/foo": "y"}), ""},
		"drop a restricted one": {update, "nodes", "n1", node("n1", nil),
			node("n1", map[string]string{"kubernetes.io/foo": "y"}),
			"is not allowed to modify labels: kubernetes.io/foo"},
		"taint": {update, "nodes/status", "n1", node("n1", nil, corev1.Taint{Key: "a"}),
			node("n1", nil), `nodes "n1" is forbidden: node "n1" is not allowed to modify taints`},
		"status of another": {update, "nodes/status", "n2", node("n2", nil), node("n2", nil),
			`not allowed to modify node "n2"`},
		"a pod": {create, "pods", "", pod("n1", false, nil), nil,
			`pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		"a mirror pod": {create, "pods", "", pod("n1", true, nil), nil, ""},
		"a mirror of nobody": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.OwnerReferences = nil
		}), nil, `pods "p" is forbidden: node "n1" can only create pods with an owner reference set to itself`},
		"of another life": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.OwnerReferences[0].UID = "x"
		}), nil, `pods "p" is forbidden: node n1 UID mismatch: expected x got node-uid`},
		"configured from a map": {create, "nodes", "", configured, nil,
			`nodes "n1" is forbidden: node "n1" is not allowed to create pods with a non-nil configSource`},
		"configure from a map": {update, "nodes", "n1", configured, node("n1", nil),
			`nodes "n1" is forbidden: node "n1" is not allowed to update configSource to a new non-nil configSource`},
		"with addresses": {create, "nodes", "", routed, nil,
			`nodes "n1" is forbidden: node "n1" is not allowed to set its podCIDRs`},
		"take addresses": {update, "nodes", "n1", routed, node("n1", nil),
			`nodes "n1" is forbidden: node "n1" is not allowed to set its podCIDRs`},
		"keep addresses":     {update, "nodes", "n1", routed, routed, ""},
		"stay configured":    {update, "nodes", "n1", configured, configured, ""},
		"configured no more": {update, "nodes", "n1", node("n1", nil), configured, ""},
		"a mirror, glusterfs": {create, "pods", "",
			withVolume(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "e"}}), nil,
			`pods "p" is forbidden: node "n1" can not create pods that reference endpoints (via glusterFS volumes)`},
		"a mirror, csi driver": {create, "pods", "",
			withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), nil,
			"can not create pods that reference csidrivers (via CSI volumes)"},
		"a mirror, certificate": {create, "pods", "",
			projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}), nil,
			"can not create pods that reference podcertificates"},
		"a mirror pod elsewhere": {create, "pods", "", pod("n2", true, nil), nil,
			`node "n1" can only create pods with spec.nodeName set to itself`},
		"a mirror with account": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "sa"
		}), nil, "can not create pods that reference serviceaccounts"},
		"a mirror with secret": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = make([]corev1.LocalObjectReference, 1)
		}), nil, "secrets"},
		"a mirror, csi": {create, "pods", "",
			withVolume(corev1.VolumeSource{
				CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}), nil,
			`pods "p" is forbidden: node "n1" can not create pods that reference secrets`},
		"a mirror, flexVolume": {create, "pods", "",
			withVolume(corev1.VolumeSource{
				FlexVolume: &corev1.FlexVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}), nil,
			"reference secrets"},
		"a mirror, iscsi": {create, "pods", "",
			withVolume(corev1.VolumeSource{
				ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}), nil,
			"reference secrets"},
		"a mirror, azureFile": {create, "pods", "",
			withVolume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}}), nil,
			"reference secrets"},
		"a mirror, rbd": {create, "pods", "",
			withVolume(corev1.VolumeSource{
				RBD: &corev1.RBDVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}), nil,
			"reference secrets"},
		"a mirror, config map": {create, "pods", "",
			withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), nil, "reference configmaps"},
		"a mirror, ephemeral": {create, "pods", "",
			withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), nil,
			"reference persistentvolumeclaims (via ephemeral volumes)"},
		"a mirror, token": {create, "pods", "",
			projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}), nil,
			"reference serviceaccounts (via projected volumes)"},
		"a mirror, bundle": {create, "pods", "",
			projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}), nil,
			"reference clustertrustbundles"},
		"a mirror, device": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}}
		}), nil, "reference resourceclaims"},
		"a mirror, ephemeral container": {create, "pods", "", pod("n1", true, func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}}}}
		}), nil, "reference secrets"},
		"claims by status": {update, "pods/status", "mine", pod("n1", false, func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
				{Name: "a", ResourceClaimName: ptr.To("theirs")}}
		}), mine, "cannot update resource claim statuses"},
		"an extended resource's claim by status": {update, "pods/status", "mine", pod("n1", false, func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "theirs"}
		}), mine, "cannot update extended resource claim statuses"},
		"an ephemeral container": {update, "pods/ephemeralcontainers", "mine", mine, mine,
			"unexpected pod subresource"},
		"a token, other audience": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "vault"), nil, ""},
		"a token, any audience": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "x"), nil,
			`audience "x" not found in pod spec volume`},
		"a token, driver's":       {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "first"), nil, ""},
		"a token, claim's driver": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "second"), nil, ""},
		"a token, its claim's":    {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "third"), nil, ""},
		"a token, no pod's": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "fourth"), nil,
			`audience "fourth" not found in pod spec volume`},
		"a token, allowed": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "registry"), nil, ""},
		"a token, two audiences": {create, "serviceaccounts/token", "sa", tokenFor("mine-uid", "vault", "x"), nil,
			"node may only request 0 or 1 audiences"},
		"a claim's growth": {update, "persistentvolumeclaims/status", "c", claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
		}), claim(nil), ""},
		"a claim's phase": {update, "persistentvolumeclaims/status", "c", claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimLost
		}), claim(nil), "fields other than status.capacity"},
		"a claim's labels": {update, "persistentvolumeclaims/status", "c", claim(func(c *corev1.PersistentVolumeClaim) {
			c.Labels = map[string]string{"a": "b"}
		}), claim(nil), "fields other than status.capacity"},
		"a claim": {update, "persistentvolumeclaims", "c", claim(nil), claim(nil),
			"unexpected operation"},
		"delete its pod": {del, "pods", "mine", nil, nil, ""},
		"delete another's pod": {del, "pods", "other", nil, nil,
			`node "n1" can only delete pods with spec.nodeName set to itself`},
		"change a pod":     {update, "pods", "mine", mine, mine, "unexpected operation"},
		"its pod's status": {update, "pods/status", "mine", mine, mine, ""},
		"another's pod status": {update, "pods/status", "other", pod("n2", false, nil), pod("n2", false, nil),
			"can only update pod status"},
		"labels by status": {update, "pods/status", "mine", pod("n1", false, func(p *corev1.Pod) {
			p.Labels = map[string]string{"a": "b"}
		}), mine, "cannot update labels through pod status"},
		"a token":             {create, "serviceaccounts/token", "sa", tokenFor("mine-uid"), nil, ""},
		"a token for old pod": {create, "serviceaccounts/token", "sa", tokenFor("x"), nil, "does not match the UID"},
		"a token, other account": {create, "serviceaccounts/token", "admin", tokenFor("mine-uid"), nil,
			"does not run as"},
		"an unbound token": {create, "serviceaccounts/token", "sa", tokenFor(""), nil, "not bound to a pod"},
		"its lease":        {create, "leases", "", lease("n1"), nil, ""},
		"another's lease": {create, "leases", "", lease("n2"), nil,
			`leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node`},
		"its drivers": {create, "csinodes", "", csi("n1"), nil, ""},
		"another's drivers": {create, "csinodes", "", csi("n2"), nil,
			`csinodes.storage.k8s.io "n2" is forbidden: can only access CSINode with the same name as the requesting node`},
		"change another's": {update, "csinodes", "n2", csi("n2"), csi("n2"),
			"can only access CSINode with the same name as the requesting node"},
		"its devices": {create, "resourceslices", "", slice(ptr.To("n1")), nil, ""},
		"another's devices": {create, "resourceslices", "", slice(ptr.To("n2")), nil,
			`resourceslices.resource.k8s.io "s" is forbidden: can only create ResourceSlice with the same NodeName as the requesting node`},
		"devices of all nodes": {create, "resourceslices", "", slice(nil), nil,
			"can only create ResourceSlice with the same NodeName as the requesting node"},
		"a config map": {create, "configmaps", "", &corev1.ConfigMap{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name, sub, _ := strings.Cut(c.resource, "/")
			a := &admission.Attributes{Operation: c.op, Resource: corev1.SchemeGroupVersion.WithResource(name),
				Subresource: sub, Name: c.object,
				Namespace: "ns", Object: c.now, OldObject: c.old,
				User: &request.User{Name: "system:node:n1", Groups: []string{request.GroupNodes}}}
			if name == "leases" {
				a.Resource, a.Namespace = coordinationv1.SchemeGroupVersion.WithResource("leases"),
					corev1.NamespaceNodeLease
			}
			if name == "resourceslices" {
				a.Resource, a.Namespace = resourcev1.SchemeGroupVersion.WithResource(name), ""
			}
			if name == "csinodes" {
				a.Resource, a.Namespace = storagev1.SchemeGroupVersion.WithResource("csinodes"), ""
			}
			err := plug.Mutator.Admit(context.Background(), a)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v", err)
			}
			a.User = &request.User{Name: "alice"}
			if err := plug.Mutator.Admit(context.Background(), a); err != nil {
				t.Errorf("somebody else: got %v", err)
			}
		})
	}
}
