package assemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file is read strictly; what is wrong is told with the file, the plug-in and the field.
func TestLoadAdmissionConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	users := write("users", `{apiVersion: v1, kind: Config, users: [{name: "*", user: {token: t}}]}`)
	write("quota.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources: [{resource: pods, matchContains: [cpu]}]")
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	hooks := "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: "
	got, err := LoadAdmissionConfiguration(
		write("good", head+"- {name: ResourceQuota, path: quota.yaml}\n- {name: MutatingAdmissionWebhook, configuration: "+hooks+users+"}}\n"))
	if err != nil || len(got.Limited) != 1 || got.Limited[0].MatchContains[0] != "cpu" ||
		got.MutatingWebhooks["*"] == nil || got.ValidatingWebhooks != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		got, err := LoadAdmissionConfiguration(
			write("psa", head+"- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/"+
				version+", kind: PodSecurityConfiguration, defaults: {warn: baseline}, exemptions: {usernames: [a]}}}"))
		if err != nil || got.PodSecurity.Defaults.Warn.String() != "baseline:latest" ||
			got.PodSecurity.Defaults.Enforce.String() != "privileged:latest" ||
			got.PodSecurity.Exemptions.Usernames[0] != "a" {
			t.Errorf("%s: %+v, %v", version, got, err)
		}
	}
	if got, err := LoadAdmissionConfiguration(""); err != nil || got.Limited != nil {
		t.Errorf("no file: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"kind: Foo": `it must be of kind AdmissionConfiguration of apiserver.config.k8s.io/v1, and is of kind "Foo" of ""`,
		head + "- {name: ResourceQuota}\nnope: 1":         `unknown field "nope"`,
		head + "- {name: ResourceQuota, pth: x}":          `unknown field "plugins[0].pth"`,
		head + "- {name: Foo, path: x}":                   "plugins[0] (Foo): there is no such plug-in",
		head + "- {name: LimitRanger, configuration: {}}": "plugins[0] (LimitRanger): the plug-in takes no configuration",
		head + "- {name: ResourceQuota, path: none}": "plugins[0] (ResourceQuota): path: open " + dir +
			"/none",
		head + "- {name: ResourceQuota}\n- {name: ResourceQuota}": "plugins[1] (ResourceQuota): it is configured twice",
		head + "- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [{}]}}": "configuration: limitedResources[0].resource: Required value",
		head + "- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResource: [{}]}}":  `unknown field "limitedResource"`,
		head + "- {name: ValidatingAdmissionWebhook, configuration: " + hooks +
			"rel}}": `configuration: kubeConfigFile must be an absolute path, got "rel"`,
		head + "- {name: ValidatingAdmissionWebhook, configuration: " + hooks +
			"/none/x}}": "configuration: kubeConfigFile: open /none/x",
		head + "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: nope}}}":     `configuration: defaults.enforce: Invalid value: "nope": must be one of privileged, baseline, restricted`,
		head + "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {audit-version: v1}}}": `configuration: defaults.audit-version: Invalid value: "v1": must be "latest" or "v1.x"`,
		head + "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, exemptions: {namespaces: [A]}}}": `configuration: exemptions.namespaces[0]: Invalid value: "A": a lowercase RFC 1123 label must consist of`,
		head + "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, default: {enforce: baseline}}}":  `configuration: strict decoding error: unknown field "default"`,
		head + "- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v2, kind: PodSecurityConfiguration}}":                                `configuration: no kind "PodSecurityConfiguration" is registered for version "pod-security.admission.config.k8s.io/v2"`,
	} {
		path := write("bad", text)
		if _, err := LoadAdmissionConfiguration(path); err == nil ||
			!strings.HasPrefix(err.Error(), "--admission-control-config-file "+path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}
