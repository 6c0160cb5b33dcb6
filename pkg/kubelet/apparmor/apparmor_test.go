package apparmor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEnabled: the kernel must enforce profiles, securityfs must be mounted, and there must be a program that loads
// profiles.
func TestEnabled(t *testing.T) {
	t.Parallel()
	const module, securityfs, parser = "sys/module/apparmor/parameters/enabled",
		"sys/kernel/security/apparmor/profiles", "sbin/apparmor_parser"
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"Debian":                 {map[string]string{module: "Y\n", securityfs: "", parser: ""}, true},
		"switched off":           {map[string]string{module: "N\n", securityfs: "", parser: ""}, false},
		"another kernel":         {map[string]string{parser: ""}, false},
		"securityfs not mounted": {map[string]string{module: "Y\n", parser: ""}, false},
		"no parser":              {map[string]string{module: "Y\n", securityfs: ""}, false},
	} {
		root := t.TempDir()
		for file, text := range test.files {
			path := filepath.Join(root, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		if got := Enabled(root); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestCheck: a pod that asks for a profile cannot run without AppArmor, one that asks for none or for Unconfined can.
func TestCheck(t *testing.T) {
	t.Parallel()
	profile := func(kind corev1.AppArmorProfileType) *corev1.AppArmorProfile {
		return &corev1.AppArmorProfile{Type: kind}
	}
	none := (*corev1.AppArmorProfile)(nil)
	pod := func(all, init, main, ephemeral *corev1.AppArmorProfile) *corev1.Pod {
		context := func(p *corev1.AppArmorProfile) *corev1.SecurityContext {
			return &corev1.SecurityContext{AppArmorProfile: p}
		}
		return &corev1.Pod{Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{AppArmorProfile: all},
			InitContainers:  []corev1.Container{{SecurityContext: context(init)}},
			Containers:      []corev1.Container{{}, {SecurityContext: context(main)}},
			EphemeralContainers: []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: context(ephemeral)}}},
		}}
	}
	runtimeDefault, localhost, unconfined := profile(corev1.AppArmorProfileTypeRuntimeDefault),
		profile(corev1.AppArmorProfileTypeLocalhost), profile(corev1.AppArmorProfileTypeUnconfined)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want error
	}{
		"says nothing": {&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}},
			nil},
		"no profile":                       {pod(none, none, none, none), nil},
		"unconfined":                       {pod(unconfined, none, unconfined, none), nil},
		"the pod's":                        {pod(runtimeDefault, none, none, none), errDisabled},
		"a container's":                    {pod(unconfined, none, localhost, none), errDisabled},
		"an init container's":              {pod(none, runtimeDefault, none, none), errDisabled},
		"an ephemeral container's":         {pod(none, none, none, runtimeDefault), errDisabled},
		"the pod's, which a container has": {pod(runtimeDefault, unconfined, unconfined, unconfined), errDisabled},
	} {
		if got := Check(false, test.pod); !errors.Is(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
		if got := Check(true, test.pod); got != nil {
			t.Errorf("%s, with AppArmor: %v", name, got)
		}
	}
}
