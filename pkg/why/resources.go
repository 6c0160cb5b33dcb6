package why

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// ResourceOf returns where objects of type T are served. It panics for a type that it does not list, which any test of
// the caller shows: explainers read kinds without a Go type by ByKind.
func ResourceOf[T any]() schema.GroupVersionResource {
	var gv schema.GroupVersion
	var resource string
	switch t := any(new(T)).(type) {
	case *corev1.Pod:
		gv, resource = corev1.SchemeGroupVersion, "pods"
	case *corev1.Node:
		gv, resource = corev1.SchemeGroupVersion, "nodes"
	case *corev1.Namespace:
		gv, resource = corev1.SchemeGroupVersion, "namespaces"
	case *corev1.Service:
		gv, resource = corev1.SchemeGroupVersion, "services"
	case *corev1.ConfigMap:
		gv, resource = corev1.SchemeGroupVersion, "configmaps"
	case *corev1.Secret:
		gv, resource = corev1.SchemeGroupVersion, "secrets"
	case *corev1.ServiceAccount:
		gv, resource = corev1.SchemeGroupVersion, "serviceaccounts"
	case *corev1.PersistentVolume:
		gv, resource = corev1.SchemeGroupVersion, "persistentvolumes"
	case *corev1.PersistentVolumeClaim:
		gv, resource = corev1.SchemeGroupVersion, "persistentvolumeclaims"
	case *corev1.ResourceQuota:
		gv, resource = corev1.SchemeGroupVersion, "resourcequotas"
	case *corev1.LimitRange:
		gv, resource = corev1.SchemeGroupVersion, "limitranges"
	case *corev1.Event:
		gv, resource = corev1.SchemeGroupVersion, "events"
	case *corev1.ReplicationController:
		gv, resource = corev1.SchemeGroupVersion, "replicationcontrollers"
	case *appsv1.Deployment:
		gv, resource = appsv1.SchemeGroupVersion, "deployments"
	case *appsv1.ReplicaSet:
		gv, resource = appsv1.SchemeGroupVersion, "replicasets"
	case *appsv1.StatefulSet:
		gv, resource = appsv1.SchemeGroupVersion, "statefulsets"
	case *appsv1.DaemonSet:
		gv, resource = appsv1.SchemeGroupVersion, "daemonsets"
	case *batchv1.Job:
		gv, resource = batchv1.SchemeGroupVersion, "jobs"
	case *batchv1.CronJob:
		gv, resource = batchv1.SchemeGroupVersion, "cronjobs"
	case *autoscalingv2.HorizontalPodAutoscaler:
		gv, resource = autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers"
	case *discoveryv1.EndpointSlice:
		gv, resource = discoveryv1.SchemeGroupVersion, "endpointslices"
	case *networkingv1.Ingress:
		gv, resource = networkingv1.SchemeGroupVersion, "ingresses"
	case *networkingv1.IngressClass:
		gv, resource = networkingv1.SchemeGroupVersion, "ingressclasses"
	case *networkingv1.NetworkPolicy:
		gv, resource = networkingv1.SchemeGroupVersion, "networkpolicies"
	case *nodev1.RuntimeClass:
		gv, resource = nodev1.SchemeGroupVersion, "runtimeclasses"
	case *policyv1.PodDisruptionBudget:
		gv, resource = policyv1.SchemeGroupVersion, "poddisruptionbudgets"
	case *rbacv1.Role:
		gv, resource = rbacv1.SchemeGroupVersion, "roles"
	case *rbacv1.ClusterRole:
		gv, resource = rbacv1.SchemeGroupVersion, "clusterroles"
	case *rbacv1.RoleBinding:
		gv, resource = rbacv1.SchemeGroupVersion, "rolebindings"
	case *rbacv1.ClusterRoleBinding:
		gv, resource = rbacv1.SchemeGroupVersion, "clusterrolebindings"
	case *schedulingv1.PriorityClass:
		gv, resource = schedulingv1.SchemeGroupVersion, "priorityclasses"
	case *storagev1.StorageClass:
		gv, resource = storagev1.SchemeGroupVersion, "storageclasses"
	case *storagev1.CSINode:
		gv, resource = storagev1.SchemeGroupVersion, "csinodes"
	case *storagev1.CSIDriver:
		gv, resource = storagev1.SchemeGroupVersion, "csidrivers"
	case *storagev1.CSIStorageCapacity:
		gv, resource = storagev1.SchemeGroupVersion, "csistoragecapacities"
	case *storagev1.VolumeAttachment:
		gv, resource = storagev1.SchemeGroupVersion, "volumeattachments"
	case *resourcev1.ResourceClaim:
		gv, resource = resourcev1.SchemeGroupVersion, "resourceclaims"
	case *resourcev1.ResourceSlice:
		gv, resource = resourcev1.SchemeGroupVersion, "resourceslices"
	case *resourcev1.DeviceClass:
		gv, resource = resourcev1.SchemeGroupVersion, "deviceclasses"
	case *coordinationv1.Lease:
		gv, resource = coordinationv1.SchemeGroupVersion, "leases"
	case *apiextensionsv1.CustomResourceDefinition:
		gv, resource = apiextensionsv1.SchemeGroupVersion, "customresourcedefinitions"
	case *apiregistrationv1.APIService:
		gv, resource = apiregistrationv1.SchemeGroupVersion, "apiservices"
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		gv, resource = admissionregistrationv1.SchemeGroupVersion, "mutatingwebhookconfigurations"
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		gv, resource = admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicies"
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		gv, resource = admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicybindings"
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		gv, resource = admissionregistrationv1.SchemeGroupVersion, "validatingwebhookconfigurations"
	default:
		panic(fmt.Sprintf("why: no resource is known for %T", t))
	}
	return gv.WithResource(resource)
}

// noMatch reports whether a server said that it does not serve a kind. Any other error leaves it open.
func noMatch(err error) bool { return meta.IsNoMatchError(err) }
