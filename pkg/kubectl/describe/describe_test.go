package describe

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// shown is what write writes, in columns.
func shown(t *testing.T, write func(*describer) error) string {
	t.Helper()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	d := &describer{writer: &writer{w: w}, now: time.Unix(1000, 0)}
	if err := write(d); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestShown(t *testing.T) {
	t.Parallel()
	amount := resource.MustParse
	for name, c := range map[string]struct {
		write func(*describer) error
		want  string
	}{
		"quota": {func(d *describer) error {
			return resourceQuota(d, &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"},
				Spec: corev1.ResourceQuotaSpec{
					Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort,
						corev1.ResourceQuotaScopePriorityClass}},
				Status: corev1.ResourceQuotaStatus{
					Hard: corev1.ResourceList{"pods": amount("3"), "cpu": amount("2")},
					Used: corev1.ResourceList{"cpu": amount("500m")},
				},
			})
		}, `Name:       q
Namespace:  ns
Scopes:     BestEffort, PriorityClass
 * Matches all pods that do not have resource requirements set. These pods have a best effort quality of service.
Resource  Used  Hard
--------  ----  ----
cpu       500m  2
pods      0     3
`},
		"limits": {func(d *describer) error {
			return limitRange(d, &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "ns"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"cpu": amount("200m")},
						Max: corev1.ResourceList{"cpu": amount("1"), "memory": amount("1Gi")}},
					{Type: corev1.LimitTypePod, MaxLimitRequestRatio: corev1.ResourceList{"cpu": amount("4")}},
				}},
			})
		}, `Name:       l
Namespace:  ns
Type        Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio
----        --------  ---  ---  ---------------  -------------  -----------------------
Container   cpu       -    1    -                200m           -
Container   memory    -    1Gi  -                -              -
Pod         cpu       -    -    -                -              4
`},
		"signing request": {func(d *describer) error {
			return signingRequest(d, &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "many",
					CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 22, 14, 11, 10, 0, time.UTC))},
				Spec: certificatesv1.CertificateSigningRequestSpec{Username: "admin", SignerName: "example.com/x",
					ExpirationSeconds: new(int32(7200)), Request: []byte(`-----BEGIN CERTIFICATE REQUEST-----
MIIBQjCB6AIBADBDMQwwCgYDVQQDDANib2IxDDAKBgNVBAoMA2RldjEMMAoGA1UE
CgwDb3BzMQowCAYDVQQLDAF4MQswCQYDVQQGEwJERTBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABGP/ep+EkNbkD5Y71gul1/SR4ouMnOt5RMpgwsP6FL9WD34ziOFI
WanbMcspSRdGkklvRzB948qsFtsVKnkx5aSgQzBBBgkqhkiG9w0BCQ4xNDAyMDAG
A1UdEQQpMCeCAWGCAWKHBAoAAAGHBAoAAAKBBWFAYi5jhgxzcGlmZmU6Ly94L3kw
CgYIKoZIzj0EAwIDSQAwRgIhAIgUbBhjh9foIZZuxjTg9YZfXBM1moC9+9lNjbsR
dDFnAiEAw4CdM5QwGqMQtrKXv/1iQM56Xw8sJ1Qq6BInLII8SUM=
-----END CERTIFICATE REQUEST-----`)},
			})
		}, `Name:                many
Labels:              <none>
Annotations:         <none>
CreationTimestamp:   Sun, 22 Nov 2026 14:11:10 +0000
Requesting User:     admin
Signer:              example.com/x
Requested Duration:  120m
Status:              Pending
Subject:
  Common Name:          bob
  Serial Number:        
  Organization:         dev
                        ops
  Organizational Unit:  x
  Country:              DE
Subject Alternative Names:
  DNS Names:        a
                    b
  Email Addresses:  a@b.c
  URIs:             spiffe://x/y
  IP Addresses:     10.0.0.1
                    10.0.0.2
`},
		"autoscaler": {func(d *describer) error {
			raw, err := os.ReadFile("testdata/horizontalpodautoscaler.yaml")
			if err != nil {
				return err
			}
			a := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := yaml.Unmarshal(raw, a); err != nil {
				return err
			}
			return autoscaler(d, a)
		}, `Name:                                                                   d1
Namespace:                                                              default
Labels:                                                                 <none>
Annotations:                                                            <none>
CreationTimestamp:                                                      Sun, 22 Nov 2026 16:32:52 +0000
Reference:                                                              Deployment/web
Metrics:                                                                ( current / target )
  resource memory on pods:                                              10Mi / 100Mi
  resource cpu on pods  (as a percentage of request):                   30% (10m) / 60%
  resource cpu of container "c" on pods  (as a percentage of request):  4% (10Mi) / 70%
  "qps" on pods:                                                        3 / 1k
  "hits" on Ingress/i (target value):                                   3 / 10
  "hits" on Ingress/i (target average value):                           4 / 10
  "q" (target value):                                                   3 / 10
  "q" (target average value):                                           3 / 10
Min replicas:                                                           1
Max replicas:                                                           3
Behavior:
  Scale Up:
    Stabilization Window: 0 seconds
    Select Policy: Max
    Policies:
      - Type: Pods     Value: 1   Period: 60 seconds
      - Type: Percent  Value: 10  Period: 60 seconds
  Scale Down:
    Stabilization Window: 60 seconds
    Select Policy: Disabled
    Policies:
      - Type: Percent  Value: 100  Period: 15 seconds
Deployment pods:       2 current / 3 desired
Conditions:
  Type         Status  Reason  Message
  ----         ------  ------  -------
  AbleToScale  True    R       m x
`},
		"disruption budget": {func(d *describer) error {
			return disruptionBudget(d, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"},
				Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("20%")),
					Selector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"app": "x"},
						MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "a", Operator: metav1.LabelSelectorOpExists}}}},
				Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 5, DesiredHealthy: 4,
					ExpectedPods: 6},
			})
		}, `Name:             b
Namespace:        ns
Max unavailable:  20%
Selector:         a,app=x
Status:
    Allowed disruptions:  1
    Current:              5
    Desired:              4
    Total:                6
`},
		"disruption budget that says nothing": {func(d *describer) error {
			return disruptionBudget(d,
				&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"}})
		}, `Name:       b
Namespace:  ns
Selector:   <unset>
Status:
    Allowed disruptions:  0
    Current:              0
    Desired:              0
    Total:                0
`},
		"claims": {func(d *describer) error {
			writeClaims(d.writer, []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"q": "r"}},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{"storage": amount("1Gi")}},
				},
			}})
			return nil
		}, `Volume Claims:
  Name:          data
  StorageClass:  
  Labels:        <none>
  Annotations:   q=r
  Capacity:      1Gi
  Access Modes:  [ReadWriteOnce ReadOnlyMany]
`},
		"an event names the part it is about": {func(d *describer) error {
			e := corev1.Event{Type: "Normal", Reason: "Started", Message: "Container started ",
				FirstTimestamp: metav1.Unix(940, 0), Source: corev1.EventSource{Component: "kubelet"}}
			f := e
			f.InvolvedObject.FieldPath = "spec.containers{c}"
			writeEvents(d, []corev1.Event{e, f})
			return nil
		}, `Events:
  Type    Reason   Age   From     Message
  ----    ------   ----  ----     -------
  Normal  Started  60s   kubelet  Container started
  Normal  Started  60s   kubelet  spec.containers{c}: Container started
`},
		"volumes": {func(d *describer) error {
			writeVolumes(d, []corev1.Volume{
				{Name: "c", VolumeSource: corev1.VolumeSource{
					CSI: &corev1.CSIVolumeSource{Driver: "x",
						VolumeAttributes: map[string]string{"a": "b", "c": "d"}}}},
				{Name: "n", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}}},
			}, "")
			return nil
		}, `Volumes:
  c:
    Type:              CSI (a Container Storage Interface (CSI) volume source)
    Driver:            x
    FSType:            
    ReadOnly:          false
    VolumeAttributes:      a=b
                           c=d
  n:
    Type:      NFS (an NFS mount that lasts the lifetime of a pod)
    Server:    s
    Path:      /p
    ReadOnly:  false
`},
		"variables from fields": {func(d *describer) error {
			d.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"l": "v"}}}
			field := func(path string) *corev1.EnvVarSource {
				return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
			}
			of := func(what, divisor string) *corev1.EnvVarSource {
				return &corev1.EnvVarSource{
					ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: what, Divisor: amount(divisor)}}
			}
			writeEnv(d, &corev1.Container{
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": amount("1500m"), "memory": amount("3Mi")}},
				Env: []corev1.EnvVar{
					{Name: "N", ValueFrom: field("metadata.name")},
					{Name: "L", ValueFrom: field("metadata.labels['l']")},
					{Name: "C", ValueFrom: of("requests.cpu", "0")},
					{Name: "M", ValueFrom: of("requests.memory", "1Mi")}, {Name: "X", ValueFrom: of("limits.cpu", "1")},
				},
			})
			return nil
		}, `    Environment:
      N:  p (v1:metadata.name)
      L:   (v1:metadata.labels['l'])
      C:  2 (requests.cpu)
      M:  3 (requests.memory)
      X:  node allocatable (limits.cpu)
`},
		"a pod with a debugging container, gates and constraints": {func(d *describer) error {
			return pod(d, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
				Spec: corev1.PodSpec{
					Resources: &corev1.ResourceRequirements{
						Limits: corev1.ResourceList{"cpu": resource.MustParse("2"),
							"memory": resource.MustParse("1Gi")}},
					Containers: []corev1.Container{{Name: "c", Image: "i"}},
					EphemeralContainers: []corev1.EphemeralContainer{
						{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox",
							Command: []string{"sh"}}, TargetContainerName: "c"}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "x.io/a"},
						{ConditionType: "x.io/b"}},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
						{MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway},
						{MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: corev1.DoNotSchedule,
							LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
					},
				},
				Status: corev1.PodStatus{
					Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort, NominatedNodeName: "n2",
					Conditions: []corev1.PodCondition{{Type: "x.io/a", Status: corev1.ConditionTrue}},
					EphemeralContainerStatuses: []corev1.ContainerStatus{
						{Name: "debugger", ContainerID: "x://1",
							State: corev1.ContainerState{
								Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}},
				},
			})
		}, `Name:               p
Namespace:          ns
Node:               <none>
Labels:             <none>
Annotations:        <none>
Status:             Pending
IP:                 
IPs:                <none>
NominatedNodeName:  n2
Resources:
  Limits:
    cpu:     2
    memory:  1Gi
Containers:
  c:
    Image:        i
    Port:         <none>
    Host Port:    <none>
    Environment:  <none>
    Mounts:       <none>
Ephemeral Containers:
  debugger:
    Container ID:  x://1
    Image:         busybox
    Image ID:      
    Port:          <none>
    Host Port:     <none>
    Command:
      sh
    State:          Terminated
      Reason:       Error
      Exit Code:    3
      Started:      Mon, 01 Jan 0001 00:00:00 +0000
      Finished:     Mon, 01 Jan 0001 00:00:00 +0000
    Ready:          False
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Readiness Gates:
  Type     Status
  x.io/a   True 
  x.io/b   <none> 
Conditions:
  Type                        Status
  x.io/a                      True 
Volumes:                      <none>
QoS Class:                    BestEffort
Node-Selectors:               <none>
Tolerations:                  <none>
Topology Spread Constraints:  host:DoNotSchedule when max skew 1 is exceeded for selector a=b
                              zone:ScheduleAnyway when max skew 2 is exceeded
`},
		"tolerations by key": {func(d *describer) error {
			writeTolerations(d.writer, "",
				[]corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists,
					Effect: corev1.TaintEffectNoSchedule}, {Operator: corev1.TolerationOpExists}})
			return nil
		}, "Tolerations:  op=Exists\n              k:NoSchedule op=Exists\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := shown(t, c.write); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestLoads(t *testing.T) {
	t.Parallel()
	usual, extended := loads(
		corev1.ResourceList{"pods": {}, "x.io/gpu": {}, "hugepages-2Mi": {}, "hugepages-1Gi": {}, "memory": {}})
	if want := []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-1Gi",
		"hugepages-2Mi"}; !slices.Equal(usual, want) {
		t.Errorf("got %v, want %v", usual, want)
	}
	if want := []corev1.ResourceName{"x.io/gpu"}; !slices.Equal(extended, want) {
		t.Errorf("got %v, want %v", extended, want)
	}
}
