package rows

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What was stored before a rule was made may stay, with a warning where Kubernetes 1.36.3 has one; what is new must
// keep the rule.
func TestRatcheting(t *testing.T) {
	t.Parallel()
	signed := signedRequest(t)
	meta := metav1.ObjectMeta{Name: "x", Namespace: "ns", ResourceVersion: "1"}
	service := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None", ClusterIPs: []string{"None"},
				SessionAffinity:       corev1.ServiceAffinityNone,
				IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
				IPFamilyPolicy:        new(corev1.IPFamilyPolicySingleStack),
				InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
				Ports:                 []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}}
		change(s)
		return s
	}
	external := func(ips ...string) *corev1.Service {
		return service(func(s *corev1.Service) { s.Spec.ExternalIPs = ips })
	}
	clusterIP := service(func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "010.96.0.7", []string{"010.96.0.7"}
	})
	balanced := func(ranges []string, ips ...string) *corev1.Service {
		return service(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.LoadBalancerSourceRanges =
				corev1.ServiceTypeLoadBalancer, "10.96.0.7", []string{"10.96.0.7"}, ranges
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.ExternalTrafficPolicy = new(false),
				corev1.ServiceExternalTrafficPolicyCluster
			for _, ip := range ips {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress,
					corev1.LoadBalancerIngress{IP: ip, IPMode: new(corev1.LoadBalancerIPModeVIP)})
			}
		})
	}
	policy := func(cidr string, except ...string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: meta,
			Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				Egress: []networkingv1.NetworkPolicyEgressRule{
					{To: []networkingv1.NetworkPolicyPeer{
						{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}}}}}}
	}
	ingress := func(secret string, ips ...string) *networkingv1.Ingress {
		i := &networkingv1.Ingress{ObjectMeta: meta,
			Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{SecretName: secret}},
				DefaultBackend: &networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: "s",
						Port: networkingv1.ServiceBackendPort{Number: 80}}}}}
		for _, ip := range ips {
			i.Status.LoadBalancer.Ingress = append(i.Status.LoadBalancer.Ingress,
				networkingv1.IngressLoadBalancerIngress{IP: ip})
		}
		return i
	}
	endpoints := func(ips ...string) *corev1.Endpoints {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: 80, Protocol: corev1.ProtocolTCP}}}
		for _, ip := range ips {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: ip})
		}
		return &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{subset}}
	}
	slice := func(ips ...string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: ips}}}
	}
	cronJob := &batchv1.CronJob{ObjectMeta: meta,
		Spec: batchv1.CronJobSpec{Schedule: "TZ=UTC 0 0 * * *", ConcurrencyPolicy: batchv1.AllowConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}}}
	autoscaler := func(least int32) *autoscalingv2.HorizontalPodAutoscaler {
		return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta,
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: 3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "a", Name: "b"},
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType,
					External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "x"},
						Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType,
							Value: new(resource.MustParse("1"))}}}}}}
	}
	request := func(change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "1"},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: signed, SignerName: "example.com/signer",
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}}}
		change(r)
		return r
	}
	asked := func(change func(
		*certificatesv1.CertificateSigningRequestSpec)) *certificatesv1.CertificateSigningRequest {
		return request(func(r *certificatesv1.CertificateSigningRequest) { change(&r.Spec) })
	}
	decided := func(types ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
		return request(func(r *certificatesv1.CertificateSigningRequest) {
			for _, t := range types {
				r.Status.Conditions = append(r.Status.Conditions,
					certificatesv1.CertificateSigningRequestCondition{Type: t, Status: corev1.ConditionTrue})
			}
		})
	}
	badRequest := asked(func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = []byte("none") })
	noUsages := asked(func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = nil })
	oldUsages := asked(func(s *certificatesv1.CertificateSigningRequestSpec) {
		s.Usages = []certificatesv1.KeyUsage{"unknown", "client auth", "client auth"}
	})
	badSigner := asked(func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "signer" })
	legacySigner := asked(func(s *certificatesv1.CertificateSigningRequestSpec) {
		s.SignerName = "kubernetes.io/legacy-unknown"
	})
	short := asked(func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(1)) })
	issued := request(func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("none") })
	hooks := func(all ...admissionregistrationv1.ValidatingWebhook) runtime.Object {
		v := &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "1"}}
		for i, h := range all {
			if h.Name == "" {
				h.Name = fmt.Sprintf("h%d.example.com", i)
			}
			h.ClientConfig.URL = new("https://example.com")
			if h.SideEffects == nil {
				h.SideEffects = new(admissionregistrationv1.SideEffectClassNone)
			}
			if h.AdmissionReviewVersions == nil {
				h.AdmissionReviewVersions = []string{"v1"}
			}
			v.Webhooks = append(v.Webhooks, h)
		}
		return v
	}
	hook := func(change func(*admissionregistrationv1.ValidatingWebhook)) admissionregistrationv1.ValidatingWebhook {
		var h admissionregistrationv1.ValidatingWebhook
		change(&h)
		return h
	}
	effects := func(c admissionregistrationv1.SideEffectClass) admissionregistrationv1.ValidatingWebhook {
		return hook(func(h *admissionregistrationv1.ValidatingWebhook) { h.SideEffects = &c })
	}
	speaks := func(versions ...string) admissionregistrationv1.ValidatingWebhook {
		return hook(func(h *admissionregistrationv1.ValidatingWebhook) { h.AdmissionReviewVersions = versions })
	}
	named := func(name string) admissionregistrationv1.ValidatingWebhook {
		return hook(func(h *admissionregistrationv1.ValidatingWebhook) { h.Name = name })
	}
	unnamed := []admissionregistrationv1.MatchCondition{{Expression: "true"}}
	conditional := func(change func(*admissionregistrationv1.ValidatingWebhook)) runtime.Object {
		return hooks(hook(func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = unnamed
			change(h)
		}))
	}
	rule := &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"a"}, APIVersions: []string{"v1"},
					Resources: []string{"b"}}}}}}
	validatingPolicy := func(policy admissionregistrationv1.FailurePolicyType) runtime.Object {
		return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: rule.DeepCopy(),
				FailurePolicy: &policy, MatchConditions: unnamed,
				Validations: []admissionregistrationv1.Validation{{Expression: "true"}}}}
	}
	mutatingPolicy := func(policy admissionregistrationv1.FailurePolicyType) runtime.Object {
		return &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta,
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{MatchConstraints: rule.DeepCopy(),
				FailurePolicy: &policy, MatchConditions: unnamed,
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: "Object{}"}}}}}
	}
	flow := &flowcontrolv1.FlowSchema{ObjectMeta: meta,
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "a"}},
		Status: flowcontrolv1.FlowSchemaStatus{Conditions: make([]flowcontrolv1.FlowSchemaCondition, 1)}}
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta,
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}},
		Status: flowcontrolv1.PriorityLevelConfigurationStatus{
			Conditions: make([]flowcontrolv1.PriorityLevelConfigurationCondition, 1)}}
	class := &networkingv1.IngressClass{ObjectMeta: meta, Spec: networkingv1.IngressClassSpec{Controller: "a b"}}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r",
		Exactly: &resourcev1.ExactDeviceRequest{}}}
	priority := &schedulingv1.PriorityClass{ObjectMeta: meta, PreemptionPolicy: new(corev1.PreemptionPolicy("x"))}
	set := func(image string, replicas int32, more ...string) *appsv1.StatefulSet {
		labels := map[string]string{"a": "b"}
		for _, l := range more {
			labels[l] = ""
		}
		return &appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}}}
	}
	job := func(labels map[string]string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "ns", UID: "u", ResourceVersion: "1"},
			Spec: batchv1.JobSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"controller-uid": "u"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	}
	oldJob := job(map[string]string{"controller-uid": "u", "job-name": "x"})
	newJob := job(map[string]string{"controller-uid": "u", "job-name": "x", "batch.kubernetes.io/controller-uid": "u",
		"batch.kubernetes.io/job-name": "x"})
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: meta,
			Spec: corev1.PodSpec{NodeSelector: map[string]string{"beta.kubernetes.io/os": "linux"},
				Containers: []corev1.Container{{Name: "c", Image: image}}}}
	}
	const approved, denied = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied
	const headless = "spec.externalIPs is ignored for headless services"
	for name, c := range map[string]struct {
		resource, subresource string
		old, obj              runtime.Object
		errors, warnings      []string // beginnings of errors
	}{
		"an external IP": {resource: "services", old: external("010.1.2.3"),
			obj: external("010.1.2.3", "1.1.1.1"),
			warnings: []string{headless,
				`spec.externalIPs[0]: non-standard IP address "010.1.2.3" is invalid: use "10.1.2.3"`}},
		"a new external IP": {resource: "services", old: external("010.1.2.3"), obj: external("010.1.2.4"),
			errors: []string{`spec.externalIPs[0]: Invalid value: "010.1.2.4": must not have leading 0s`}},
		"a cluster IP": {resource: "services", old: clusterIP, obj: clusterIP,
			warnings: []string{`spec.clusterIPs[0]: non-standard IP address "010.96.0.7" is invalid: use "10.96.0.7"`}},
		"a source range": {resource: "services", old: balanced([]string{"010.0.0.0/8"}),
			obj:      balanced([]string{"010.0.0.0/8"}),
			warnings: []string{`spec.loadBalancerSourceRanges[0]: non-standard CIDR value "010.0.0.0/8" is invalid: use "10.0.0.0/8"`}},
		"a new source range": {resource: "services", old: balanced([]string{"010.0.0.0/8"}),
			obj:    balanced([]string{"011.0.0.0/8"}),
			errors: []string{`spec.LoadBalancerSourceRanges[0]: Invalid value: "011.0.0.0/8": must not have leading 0s`}},
		"a load balancer's IP": {resource: "services", subresource: "status", old: balanced(nil, "010.1.1.1"),
			obj:      balanced(nil, "1.1.1.1", "010.1.1.1"),
			warnings: []string{`status.loadBalancer.ingress[1]: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
		"a load balancer's new IP": {resource: "services", subresource: "status", old: balanced(nil, "010.1.1.1"),
			obj:    balanced(nil, "010.1.1.2"),
			errors: []string{`status.loadBalancer.ingress[0].ip: Invalid value: "010.1.1.2"`}},
		"a policy's range": {resource: "networkpolicies", old: policy("010.0.0.0/8"),
			obj:      policy("010.0.0.0/8"),
			warnings: []string{`spec.egress[0].to[0].ipBlock.cidr: non-standard CIDR value "010.0.0.0/8" is invalid: use "10.0.0.0/8"`}},
		"a policy's exception": {resource: "networkpolicies", old: policy("10.0.0.0/8", "010.1.0.0/16"),
			obj:      policy("10.0.0.0/8", "010.1.0.0/16"),
			warnings: []string{`spec.egress[0].to[0].ipBlock.except[0]: non-standard CIDR value "010.1.0.0/16" is invalid: use "10.1.0.0/16"`}},
		"an ambiguous range": {resource: "networkpolicies", old: policy("10.0.0.1/8"),
			obj:      policy("10.0.0.1/8"),
			warnings: []string{`spec.egress[0].to[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)`}},
		"a policy's new range": {resource: "networkpolicies", old: policy("010.0.0.0/8"),
			obj:    policy("011.0.0.0/8"),
			errors: []string{`spec.egress[0].to[0].ipBlock.cidr: Invalid value: "011.0.0.0/8"`}},
		"an Ingress' Secret": {resource: "ingresses", old: ingress("A_b"), obj: ingress("C_d")},
		"an Ingress' new Secret": {resource: "ingresses", old: ingress("a-b"), obj: ingress("C_d"),
			errors: []string{`spec.tls[0].secretName: Invalid value: "C_d"`}},
		"an Ingress' address": {resource: "ingresses", subresource: "status", old: ingress("a", "010.1.1.1"),
			obj:      ingress("a", "010.1.1.1"),
			warnings: []string{`status.loadBalancer.ingress[0]: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
		"Endpoints": {resource: "endpoints", old: endpoints("010.1.1.1"), obj: endpoints("010.1.1.1"),
			warnings: []string{`subsets[0].addresses[0].ip: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
		"Endpoints that change": {resource: "endpoints", old: endpoints("010.1.1.1"),
			obj:    endpoints("010.1.1.1", "2.2.2.2"),
			errors: []string{`subsets[0].addresses[0].ip: Invalid value: "010.1.1.1"`}},
		"an EndpointSlice": {resource: "endpointslices", old: slice("010.1.1.1"), obj: slice("010.1.1.1"),
			warnings: []string{`endpoints[0].addresses[0]: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
		"a zone in a schedule": {resource: "cronjobs", old: cronJob, obj: cronJob,
			warnings: []string{"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"}},
		"an autoscaler to zero":     {resource: "horizontalpodautoscalers", old: autoscaler(0), obj: autoscaler(0)},
		"an autoscaler new to zero": {resource: "horizontalpodautoscalers", old: autoscaler(1), obj: autoscaler(0)},
		"a range that is not as RFC": {resource: "networkpolicies", old: policy("10.0.0.0/8"),
			obj:      policy("fd00:0::/64"),
			warnings: []string{`spec.egress[0].to[0].ipBlock.cidr: IPv6 CIDR value "fd00:0::/64" should be in RFC 5952 canonical format ("fd00::/64")`}},
		"a webhook's side effects": {resource: "validatingwebhookconfigurations", old: hooks(effects("Some")),
			obj: hooks(effects("Unknown"), effects("Some"))},
		"a webhook's new side effects": {resource: "validatingwebhookconfigurations", old: hooks(effects("None")),
			obj: hooks(effects("Some")), errors: []string{
				`webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`}},
		"a webhook's side effects that nobody knows": {resource: "validatingwebhookconfigurations",
			old: hooks(effects("x")), obj: hooks(effects("x")), errors: []string{
				`webhooks[0].sideEffects: Unsupported value: "x": supported values: "None", "NoneOnDryRun", "Some", "Unknown"`}},
		"a webhook's versions": {resource: "validatingwebhookconfigurations", old: hooks(speaks("v9")),
			obj: hooks(speaks("v8"))},
		"a webhook's new versions": {resource: "validatingwebhookconfigurations", old: hooks(speaks("v1")),
			obj:    hooks(speaks("v9")),
			errors: []string{`webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1`}},
		"webhooks of one name": {resource: "validatingwebhookconfigurations",
			old: hooks(named("a.b.c"), named("a.b.c")), obj: hooks(named("a.b.c"), named("a.b.c"))},
		"a webhook of another's name": {resource: "validatingwebhookconfigurations",
			old: hooks(named("a.b.c"), named("b.b.c")), obj: hooks(named("a.b.c"), named("a.b.c")),
			errors: []string{`webhooks[1].name: Duplicate value: "a.b.c"`}},
		"a webhook's match conditions": {resource: "validatingwebhookconfigurations",
			old: conditional(func(*admissionregistrationv1.ValidatingWebhook) {}),
			obj: conditional(func(h *admissionregistrationv1.ValidatingWebhook) { h.TimeoutSeconds = new(int32(2)) })},
		"a webhook's changed match conditions": {resource: "validatingwebhookconfigurations",
			old: conditional(func(*admissionregistrationv1.ValidatingWebhook) {}),
			obj: conditional(func(h *admissionregistrationv1.ValidatingWebhook) {
				h.MatchConditions = append(slices.Clone(unnamed),
					admissionregistrationv1.MatchCondition{Name: "a", Expression: "true"})
			}),
			errors: []string{"webhooks[0].matchConditions[0].name: Required value"}},
		"a validating policy's match conditions": {resource: "validatingadmissionpolicies",
			old: validatingPolicy("Ignore"), obj: validatingPolicy("Fail")},
		"a mutating policy's match conditions": {resource: "mutatingadmissionpolicies",
			old: mutatingPolicy("Ignore"), obj: mutatingPolicy("Fail")},
		"a FlowSchema's conditions": {resource: "flowschemas", old: flow, obj: flow,
			errors: []string{"status.conditions[0].type: Required value"}},
		"a priority level's conditions": {resource: "prioritylevelconfigurations", old: level, obj: level,
			errors: []string{"status.conditions[0].type: Required value"}},
		"an IngressClass's controller": {resource: "ingressclasses", old: class, obj: class,
			errors: []string{`spec.controller: Invalid value: "a b"`}},
		"a claim template's class": {resource: "resourceclaimtemplates", old: template, obj: template,
			errors: []string{"spec.spec.devices.requests[0].exactly.deviceClassName: Required value"}},
		"a class's preemption":     {resource: "priorityclasses", old: priority, obj: priority},
		"a StatefulSet's template": {resource: "statefulsets", old: set("", 1), obj: set("", 2)},
		"a StatefulSet's new template": {resource: "statefulsets", old: set("i", 1), obj: set("", 1),
			errors: []string{"spec.template.spec.containers[0].image: Required value"}},
		"a StatefulSet's labels": {resource: "statefulsets", old: set("", 1, "a b"), obj: set("", 1, "a b"),
			errors: []string{`spec.template.labels: Invalid value: "a b"`}},
		"a job without labels of a domain": {resource: "jobs", old: oldJob, obj: oldJob},
		"a job that loses labels of a domain": {resource: "jobs", old: newJob, obj: oldJob,
			errors: []string{"spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Required value",
				"spec.template.metadata.labels[batch.kubernetes.io/job-name]: Required value",
				"spec.template: Invalid value"}},
		"a pod's deprecated label": {resource: "pods", old: pod("a"), obj: pod("b")},
		"a request that is none": {resource: "certificatesigningrequests", old: badRequest, obj: badRequest,
			errors: []string{`spec.request: Invalid value: "bm9uZQ==": PEM block type must be CERTIFICATE REQUEST`}},
		"a request without usages": {resource: "certificatesigningrequests", old: noUsages, obj: noUsages,
			errors: []string{"spec.usages: Required value"}},
		"a request's old usages": {resource: "certificatesigningrequests", old: oldUsages, obj: oldUsages},
		"a request's wrong signer": {resource: "certificatesigningrequests", old: badSigner, obj: badSigner,
			errors: []string{`spec.signerName: Invalid value: "signer": must be a fully qualified domain and path`}},
		"a request's legacy signer": {resource: "certificatesigningrequests", old: legacySigner, obj: legacySigner},
		"a request for a moment": {resource: "certificatesigningrequests", old: short, obj: short,
			errors: []string{"spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds"}},
		"the status of a request that is none": {resource: "certificatesigningrequests", subresource: "status",
			old: badRequest, obj: badRequest, errors: []string{"spec.request: Invalid value"}},
		"the approval of a request that is none": {resource: "certificatesigningrequests", subresource: "approval",
			old: badRequest, obj: badRequest, errors: []string{"spec.request: Invalid value"}},
		"a request's repeated conditions": {resource: "certificatesigningrequests", subresource: "status",
			old: decided("X", "X"), obj: decided("X", "X", "Y", "Y")},
		"a request's newly repeated condition": {resource: "certificatesigningrequests", subresource: "status",
			old: decided("X"), obj: decided("X", "X"),
			errors: []string{`status.conditions[1].type: Duplicate value: "X"`}},
		"a request's condition without a type": {resource: "certificatesigningrequests", subresource: "approval",
			old: decided(""), obj: decided("", "Y")},
		"a request's new condition without a type": {resource: "certificatesigningrequests", subresource: "approval",
			old: decided(), obj: decided(""), errors: []string{"status.conditions[0].type: Required value"}},
		"a request that is approved and denied": {resource: "certificatesigningrequests", subresource: "approval",
			old: decided(approved, denied), obj: decided(approved, denied, "Y")},
		"a request that becomes approved and denied": {resource: "certificatesigningrequests",
			subresource: "approval", old: decided(approved), obj: decided(approved, denied),
			errors: []string{`status.conditions: Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": ` +
				"must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"}},
		"a request's certificate that is none": {resource: "certificatesigningrequests", subresource: "status",
			old: issued, obj: issued},
		"a request's new certificate that is none": {resource: "certificatesigningrequests", subresource: "status",
			old: decided(), obj: issued, errors: []string{`status.certificate: Invalid value: "<certificate data>"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, row := range All() {
				if row.Resource != c.resource {
					continue
				}
				strategy := &row.Strategy
				for i := range row.Subresources {
					if sub := &row.Subresources[i]; sub.Name == c.subresource {
						strategy = sub.Strategy
					}
				}
				old, obj := c.old.DeepCopyObject(), c.obj.DeepCopyObject()
				if row.Strategy.Default != nil {
					row.Strategy.Default(old)
					row.Strategy.Default(obj)
				}
				errs, _ := strategy.ValidateUpdate(obj, old)
				if len(errs) != len(c.errors) {
					t.Fatalf("%v; want %q", errs, c.errors)
				}
				for i := range errs {
					if !strings.HasPrefix(errs[i].Error(), c.errors[i]) {
						t.Errorf("%v; want %s", errs[i], c.errors[i])
					}
				}
				if len(c.errors) > 0 {
					return
				}
				var warnings []string
				if strategy.Warnings != nil {
					warnings = strategy.Warnings(obj, old)
				}
				if !slices.Equal(warnings, c.warnings) {
					t.Errorf("warnings %q; want %q", warnings, c.warnings)
				}
				return
			}
			t.Errorf("no %s", c.resource)
		})
	}
}

// signedRequest returns a valid certificate request, PEM-encoded.
func signedRequest(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
