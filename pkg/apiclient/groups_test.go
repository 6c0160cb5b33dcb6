package apiclient_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/admissionregistration"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/autoscaling"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/apiclient/events"
	"bonsai/pkg/apiclient/policy"
	"bonsai/pkg/apiclient/rbac"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/apiclient/storage"
)

// TestResourcesOfKinds: what a kind is called and where its resource is served fit together.
func TestResourcesOfKinds(t *testing.T) {
	t.Parallel()
	s := scheme.New()
	c, err := apiclient.New(&rest.Config{Host: "http://127.0.0.1:1"}, s)
	if err != nil {
		t.Fatal(err)
	}
	of(t, s, core.Pods(c))
	of(t, s, core.Nodes(c))
	of(t, s, core.Namespaces(c))
	of(t, s, core.Services(c))
	of(t, s, core.Endpoints(c))
	of(t, s, core.Events(c))
	of(t, s, core.ConfigMaps(c))
	of(t, s, core.Secrets(c))
	of(t, s, core.ServiceAccounts(c))
	of(t, s, core.PersistentVolumeClaims(c))
	of(t, s, core.PersistentVolumes(c))
	of(t, s, core.ReplicationControllers(c))
	of(t, s, core.ResourceQuotas(c))
	of(t, s, apps.ReplicaSets(c))
	of(t, s, apps.Deployments(c))
	of(t, s, apps.DaemonSets(c))
	of(t, s, apps.StatefulSets(c))
	of(t, s, apps.ControllerRevisions(c))
	of(t, s, coordination.Leases(c))
	of(t, s, discovery.EndpointSlices(c))
	of(t, s, events.Events(c))
	of(t, s, autoscaling.HorizontalPodAutoscalers(c))
	of(t, s, policy.PodDisruptionBudgets(c))
	of(t, s, rbac.ClusterRoles(c))
	of(t, s, resource.ResourceClaims(c))
	of(t, s, resource.ResourceClaimTemplates(c))
	of(t, s, resource.ResourceSlices(c))
	of(t, s, resource.DeviceClasses(c))
	of(t, s, storage.StorageClasses(c))
	of(t, s, storage.CSIDrivers(c))
	of(t, s, storage.CSINodes(c))
	of(t, s, storage.CSIStorageCapacities(c))
	of(t, s, storage.VolumeAttachments(c))
	of(t, s, storage.VolumeAttributesClasses(c))
	of(t, s, admissionregistration.ValidatingAdmissionPolicies(c))
}

func of[T apiclient.Object](t *testing.T, s *runtime.Scheme, r *apiclient.Resource[T]) {
	t.Helper()
	kinds, _, err := s.ObjectKinds(r.New())
	if err != nil {
		t.Error(err)
		return
	}
	if plural, _ := meta.UnsafeGuessKindToResource(kinds[0]); plural != r.GVR() {
		t.Errorf("%v is served as %v", kinds[0], r.GVR())
	}
}
