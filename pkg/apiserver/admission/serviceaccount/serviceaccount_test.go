package serviceaccount

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/admission"
)

type accounts map[string]*corev1.ServiceAccount

func (a accounts) Get(_ context.Context, _, name string) (runtime.Object, error) {
	if sa := a[name]; sa != nil {
		return sa, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
}

func (a accounts) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return a.Get(ctx, ns, name)
}

// want is the pod's spec as kube-apiserver v1.36 leaves it, except for the defaults that are not this plug-in's.
const want = `containers:
- image: x
  name: c
  resources: {}
  volumeMounts:
  - mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    name: kube-api-access-abcde
    readOnly: true
imagePullSecrets:
- name: pull
serviceAccount: default
serviceAccountName: default
volumes:
- name: kube-api-access-abcde
  projected:
    defaultMode: 420
    sources:
    - serviceAccountToken:
        expirationSeconds: 3607
        path: token
    - configMap:
        items:
        - key: ca.crt
          path: ca.crt
        name: kube-root-ca.crt
    - downwardAPI:
        items:
        - fieldRef:
            apiVersion: v1
            fieldPath: metadata.namespace
          path: namespace
`

func admit(p *corev1.Pod) error {
	plug := New(Config{Suffix: func() string { return "abcde" }, ServiceAccounts: accounts{
		"default": {ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
		"quiet":   {AutomountServiceAccountToken: ptr.To(false)},
	}})
	a := &admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "default", Object: p}
	if err := plug.Mutator.Admit(context.Background(), a); err != nil {
		return err
	}
	return plug.Validator.Validate(context.Background(), a)
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
	if change != nil {
		change(p)
	}
	return p
}

func TestTokenVolume(t *testing.T) {
	t.Parallel()
	p := pod(nil)
	for range 2 { // a second time nothing changes
		if err := admit(p); err != nil {
			t.Fatal(err)
		}
		if got, err := yaml.Marshal(p.Spec); err != nil || string(got) != want {
			t.Errorf("got %v\n%s", err, got)
		}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		volumes int
		err     string
	}{
		"the account says no": {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "quiet" }, 0, ""},
		"the pod says yes": {func(p *corev1.Pod) {
			p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = "quiet", ptr.To(true)
		}, 1, ""},
		"the pod says no": {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = ptr.To(false) }, 0, ""},
		"its own mount": {func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{MountPath: mountPath}}
		}, 0, ""},
		"no such account": {func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "nope"
		}, 0, `pods "p" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found`},
		"a mirror pod": {mirror, 0, ""},
		"a mirror, with account": {func(p *corev1.Pod) {
			mirror(p)
			p.Spec.ServiceAccountName = "x"
		}, 0, "a mirror pod may not reference service accounts"},
		"a mirror, with secret": {func(p *corev1.Pod) {
			mirror(p)
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}}
		}, 1, "a mirror pod may not reference secrets"},
		"a mirror, with a driver's secret": {func(p *corev1.Pod) {
			mirror(p)
			p.Spec.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{
					CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}}}
		}, 1, "a mirror pod may not reference secrets"},
		"a mirror, with a variable's secret": {func(p *corev1.Pod) {
			mirror(p)
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		}, 0, "a mirror pod may not reference secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod(c.change)
			err := admit(p)
			if (err != nil) != (c.err != "") || err != nil && !strings.HasSuffix(err.Error(), c.err) {
				t.Fatalf("got %v", err)
			}
			if len(p.Spec.Volumes) != c.volumes {
				t.Errorf("got %d volumes", len(p.Spec.Volumes))
			}
		})
	}
}
