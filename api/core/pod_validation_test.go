package core

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func simplePod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	DefaultPod(p)
	return p
}

// TestSidecarRestartsAll: a sidecar may have restart rules: a watcher whose exit code restarts its pod is their
// documented use (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-all-containers).
func TestSidecarRestartsAll(t *testing.T) {
	t.Parallel()
	p := simplePod()
	p.Spec.InitContainers = []corev1.Container{{
		Name: "watcher", Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		RestartPolicyRules: []corev1.ContainerRestartRule{{
			Action: corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
				Values: []int32{88}},
		}},
	}}
	DefaultPod(p)
	if errs := validatePod(p); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestPodsWrongInOneThing has what Kubernetes 1.36.3 answers to pods that are wrong, or odd, in one thing.
func TestPodsWrongInOneThing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		errs     []string
		warnings []string
	}{
		"plain": {change: func(*corev1.Pod) {}},
		"an os without name": {
			change: func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{} },
			errs:   []string{"spec.os.name: Required value"}},
		"a mirror pod without node": {
			change: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
			errs:   []string{`metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`}},
		"a device claim of nothing": {
			change: func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}} },
			errs:   []string{"spec.resourceClaims[0]: Invalid value: {\"name\":\"a\"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"}},
		"half a huge page": {
			change: func(p *corev1.Pod) {
				l := corev1.ResourceList{"cpu": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("3Mi")}
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: l, Requests: l}
			},
			errs: []string{
				`spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
				`spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`}},
		"a seccomp profile without type": {
			change: func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{}}
			},
			errs: []string{"spec.containers[0].securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"}},
		"an unknown recursiveReadOnly": {
			change: func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
					{Name: "v", MountPath: "/v", RecursiveReadOnly: new(corev1.RecursiveReadOnlyMode("Foo"))}}
			},
			errs: []string{`spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: "Foo": supported values: "Disabled", "Enabled", "IfPossible"`}},
		"a claim of nothing": {
			change: func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{
						Ephemeral: &corev1.EphemeralVolumeSource{
							VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}}
			},
			errs: []string{
				"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
				"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"}},
		"a spread constraint without selector": {
			change: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
					{MaxSkew: 1, TopologyKey: "a b", WhenUnsatisfiable: corev1.DoNotSchedule}}
			},
			warnings: []string{"spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"}},
		"an anti-affinity without selector": {
			change: func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{
					PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "a"}}}}
			},
			warnings: []string{"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod"}},
		"a host address without host port": {
			change: func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{
					{ContainerPort: 80, Protocol: "TCP", HostIP: "1.2.3.4"}}
			},
			warnings: []string{"spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"}},
		"an empty pull secret": {
			change:   func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}} },
			warnings: []string{`spec.imagePullSecrets[0].name: invalid empty name ""`}},
		"two files in one place": {
			change: func(p *corev1.Pod) {
				p.Spec.ServiceAccountName = "default"
				p.Spec.Volumes = []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{
						Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
							{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t",
								ExpirationSeconds: new(int64(3600))}},
							{ConfigMap: &corev1.ConfigMapProjection{
								LocalObjectReference: corev1.LocalObjectReference{Name: "a"},
								Items:                []corev1.KeyToPath{{Key: "k", Path: "t"}}}},
							{},
						}}}}}
			},
			warnings: []string{
				`volume "v" (Projected): overlapping paths: "t" (ConfigMap "a") with "t" (ServiceAccountToken)`,
				`volume "v" (Projected) has no sources provided`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := simplePod()
			c.change(p)
			preparePodCreate(p)
			if got := texts(validatePodCreate(p)); !slices.Equal(got, c.errs) {
				t.Errorf("errors:\n got %q\nwant %q", got, c.errs)
			}
			if got := podWarnings(p, nil); !slices.Equal(got, c.warnings) {
				t.Errorf("warnings:\n got %q\nwant %q", got, c.warnings)
			}
		})
	}
}

// TestProjectedCertificates compares the errors for sources with certificates with those of a real kube-apiserver
// v1.37.2. Only the names of fields in a value differ.
func TestProjectedCertificates(t *testing.T) {
	t.Parallel()
	for sources, want := range map[string][]string{
		`{podCertificate: {}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.signerName: Required value`,
			`spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
			`spec.volumes[0].projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`,
		},
		`{podCertificate: {signerName: a}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
			`spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
			`spec.volumes[0].projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`,
		},
		`{podCertificate: {signerName: a.b/c}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
			`spec.volumes[0].projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: X, credentialBundlePath: x}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "X": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: x, maxExpirationSeconds: 3599}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: x, maxExpirationSeconds: 7862401}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: x, maxExpirationSeconds: 7862400}}`: {},
		`{podCertificate: {signerName: kubernetes.io/x, keyType: ECDSAP256, credentialBundlePath: x, maxExpirationSeconds: 86401}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, keyPath: k}}`:              {},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, certificateChainPath: k}}`: {},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, keyPath: k, certificateChainPath: k}}`: {
			`spec.volumes[0].projected: Invalid value: "k": conflicting duplicate paths`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: k, keyPath: k, certificateChainPath: l}}`: {
			`spec.volumes[0].projected: Invalid value: "k": conflicting duplicate paths`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: ../x}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.credentialBundlePath: Invalid value: "../x": must not contain '..'`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: /x}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.credentialBundlePath: Invalid value: "/x": must be a relative path`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: x, userAnnotations: {a: b}}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.userAnnotations: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")`,
		},
		`{podCertificate: {signerName: a.b/c, keyType: ECDSAP256, credentialBundlePath: x, userAnnotations: {"a.b/x": b, "/": c}}}`: {
			`spec.volumes[0].projected.sources[0].podCertificate.userAnnotations: Invalid value: "/": prefix part must be non-empty`,
			`spec.volumes[0].projected.sources[0].podCertificate.userAnnotations: Invalid value: "/": name part must be non-empty`,
			`spec.volumes[0].projected.sources[0].podCertificate.userAnnotations: Invalid value: "/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		},
		`{clusterTrustBundle: {}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified`,
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.path: Required value`,
		},
		`{clusterTrustBundle: {path: x}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified`,
		},
		`{clusterTrustBundle: {path: x, name: "A_"}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.name: Invalid value: "A_": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		`{clusterTrustBundle: {path: x, name: a, signerName: a.b/c}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle: Invalid value: {"name":"a","signerName":"a.b/c","path":"x"}: only one of name and signerName may be used`,
		},
		`{clusterTrustBundle: {path: x, signerName: a}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
		},
		`{clusterTrustBundle: {path: x, name: a, labelSelector: {}}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified`,
		},
		`{clusterTrustBundle: {path: "../x", signerName: a.b/c, labelSelector: {matchLabels: {"a b": c}}}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.path: Invalid value: "../x": must not contain '..'`,
		},
		`{clusterTrustBundle: {name: a, path: x}},{clusterTrustBundle: {name: a, path: x}}`: {
			`spec.volumes[0].projected: Invalid value: "x": conflicting duplicate paths`,
		},
		`{clusterTrustBundle: {name: "", path: x}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.name: Required value: must be a valid object name`,
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.name: Invalid value: "": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		`{clusterTrustBundle: {signerName: "", path: x}}`: {
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.signerName: Required value: must be a valid signer name`,
			`spec.volumes[0].projected.sources[0].clusterTrustBundle.signerName: Required value`,
		},
		`{clusterTrustBundle: {name: a:b, path: x}}`: {},
	} {
		var volume corev1.Volume
		if err := yaml.UnmarshalStrict([]byte("{name: t, projected: {sources: ["+sources+"]}}"), &volume); err != nil {
			t.Fatal(err)
		}
		p := simplePod()
		p.Spec.Volumes = append(p.Spec.Volumes, volume)
		preparePodCreate(p)
		got := texts(validatePodCreate(p))
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", sources, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

// TestPodStart: what a new pod may not say is put right before it is checked.
func TestPodStart(t *testing.T) {
	t.Parallel()
	p := simplePod()
	p.Spec.TerminationGracePeriodSeconds = new(int64(-1))
	DefaultPod(p)
	preparePodCreate(p)
	if *p.Spec.TerminationGracePeriodSeconds != 1 {
		t.Errorf("grace %d", *p.Spec.TerminationGracePeriodSeconds)
	}
}

// A negative grace period is read as 1 whenever a pod is sent, so that neither a pod that was stored with one nor a
// client that goes on sending one is stuck.
func TestNegativeGracePeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, sent int64
		ok           bool
	}{{-5, 1, true}, {-5, -5, true}, {-5, 2, false}, {1, -5, true}, {30, 1, false}, {30, -5, false}} {
		old := simplePod()
		old.Spec.TerminationGracePeriodSeconds = new(c.stored)
		sent := old.DeepCopy()
		sent.Spec.TerminationGracePeriodSeconds = new(c.sent)
		DefaultPod(sent)
		if errs := validatePodUpdate(sent, old); (len(errs) == 0) != c.ok {
			t.Errorf("%d to %d: %v", c.stored, c.sent, errs)
		}
	}
}

// TestEventRules: events.k8s.io wants events complete, and lets them tell of other namespaces.
func TestEventRules(t *testing.T) {
	t.Parallel()
	whole := func() *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "A b", Namespace: "ns"},
			InvolvedObject: corev1.ObjectReference{Namespace: "ns"}, Reason: "r",
			Type: "Normal", EventTime: metav1.NowMicro(), ReportingController: "x.y/z", ReportingInstance: "i",
			Action: "a"}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Event)
		want   []string
	}{
		"whole":             {func(*corev1.Event) {}, nil},
		"another namespace": {func(e *corev1.Event) { e.InvolvedObject.Namespace = "other" }, nil},
		"no namespace": {func(e *corev1.Event) {
			e.InvolvedObject.Namespace = ""
		}, []string{`involvedObject.namespace: Invalid value: "": does not match event.namespace`}},
		"another type": {func(e *corev1.Event) {
			e.Type = "Foo"
		}, []string{`type: Invalid value: "": has invalid value: Foo`}},
		"no time": {func(e *corev1.Event) {
			e.EventTime = metav1.MicroTime{}
		}, []string{"eventTime: Required value"}},
		"an old count": {func(e *corev1.Event) {
			e.Count = 3
		}, []string{`count: Invalid value: "": needs to be unset`}},
		"a series of one": {func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 1} },
			[]string{`series.count: Invalid value: "": should be at least 2`,
				"series.lastObservedTime: Required value"}},
	} {
		e := whole()
		c.change(e)
		if got := texts(ValidateEvent(e)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
	legacy := whole()
	legacy.EventTime, legacy.InvolvedObject.Namespace = metav1.MicroTime{}, "other"
	if len(validateLegacyEvent(legacy)) == 0 {
		t.Error("an event of the old form about another namespace was taken")
	}
	if msgs := validEventName("a/b", false); len(msgs) == 0 || len(validEventName("A b", false)) > 0 {
		t.Errorf("names: %v", msgs)
	}
}

// What a pod's node may read depends on whether the pod is a mirror, so that cannot be changed, not through the status
// either.
func TestMirrorStaysMirror(t *testing.T) {
	t.Parallel()
	mirror := func(value string) *corev1.Pod {
		p := simplePod()
		if value != "" {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: value}
		}
		return p
	}
	for _, c := range []struct{ old, now, want string }{
		{"a", "a", ""}, {"", "", ""}, {"", "a", "may not add mirror pod annotation"},
		{"a", "b", "may not remove or update mirror pod annotation"},
		{"a", "", "may not remove or update mirror pod annotation"},
	} {
		for what, validate := range map[string]func(obj, old *corev1.Pod) field.ErrorList{"update": validatePodUpdate,
			"status": validatePodStatusUpdate} {
			errs := validate(mirror(c.now), mirror(c.old))
			if got := strings.Join(texts(errs), "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s from %q to %q: %s", what, c.old, c.now, got)
			}
		}
	}
	if errs := validatePodEphemeralUpdate(mirror("a"), mirror("a")); len(errs) != 1 ||
		!strings.Contains(errs[0].Error(), "static pods do not support ephemeral containers") {
		t.Errorf("an ephemeral container in a mirror pod: %v", errs)
	}
}
