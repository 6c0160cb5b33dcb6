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

// TestPluginConfigurations: the configurations of plug-ins are read strictly, with upstream's bounds and messages.
func TestPluginConfigurations(t *testing.T) {
	t.Parallel()
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, []byte("{apiVersion: v1, kind: Config, current-context: c, "+
		"contexts: [{name: c, context: {cluster: w}}], clusters: [{name: w, cluster: {server: 'https://127.0.0.1:1/x'}}]}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const events = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, "
	const tolerations = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, "
	policy := "imagePolicy: {kubeConfigFile: " + hook
	for _, c := range []struct{ plugin, text, want string }{
		{"EventRateLimit", events + "limits: [{type: Server, qps: 1, burst: 1, cacheSize: -1}]", ""},
		{"EventRateLimit", events + "limits: []", "limits: Invalid value: []: must not be empty"},
		{"EventRateLimit", events + "limits: [{type: Foo, qps: 1, burst: 1}]",
			`limits[0].type: Unsupported value: "Foo": supported values: "Server", "Namespace", "User", "SourceAndObject"`},
		{"EventRateLimit", events + "limits: [{type: Server, burst: -1}, {type: User, qps: 1, burst: 1, cacheSize: -2}]",
			"[limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive, " +
				"limits[1].cacheSize: Invalid value: -2: must not be negative]"},
		{"EventRateLimit", events + "limitz: []", `unknown field "limitz"`},
		{"EventRateLimit", "apiVersion: eventratelimit.admission.k8s.io/v1, kind: Configuration",
			`and is of kind "Configuration" of "eventratelimit.admission.k8s.io/v1"`},
		{"PodTolerationRestriction", tolerations + "default: [{key: a, operator: Exists}], whitelist: []", ""},
		{"PodTolerationRestriction", tolerations + "default: [{key: a, operator: Foo}]", "default[0].operator: "},
		{"PodTolerationRestriction", tolerations + "whitelist: [{operator: Equal}]", "whitelist[0].operator: "},
		{"PodTolerationRestriction", tolerations + "defaults: []", `unknown field "defaults"`},
		{"PodNodeSelector", "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'a=b', x: ''}", ""},
		{"PodNodeSelector", "podNodeSelectorPluginConfig: {x: 'a in (b)'}",
			`podNodeSelectorPluginConfig[x]: Invalid value: "a in (b)": invalid selector: [a in (b)]`},
		{"PodNodeSelector", "podNodeSelectorPluginConfig: {x: [b]}", "cannot unmarshal array"},
		{"PodNodeSelector", "foo: {}", `unknown field "foo"`},
		{"ImagePolicyWebhook", policy + ", allowTTL: -1, denyTTL: -1, retryBackoff: -1, defaultAllow: true}", ""},
		{"ImagePolicyWebhook", policy + "}", ""},
		{"ImagePolicyWebhook", "imagePolicy: {}", "imagePolicy.kubeConfigFile: Required value"},
		{"ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: /none}", "imagePolicy.kubeConfigFile: stat /none: "},
		{"ImagePolicyWebhook", policy + ", allowTTL: 5000}",
			"imagePolicy.allowTTL: valid value is between 1s and 30m0s, got 1h23m20s"},
		{"ImagePolicyWebhook", policy + ", denyTTL: -5}", "imagePolicy.denyTTL: valid value is between 1s and 30m0s, got -5s"},
		{"ImagePolicyWebhook", policy + ", allowTTL: 9223372036854775807}", "imagePolicy.allowTTL: valid value is between"},
		{"ImagePolicyWebhook", policy + ", retryBackoff: 500000}",
			"imagePolicy.retryBackoff: valid value is between 1ns and 5m0s, got 8m20s"},
		{"ImagePolicyWebhook", policy + ", foo: 1}", `unknown field "imagePolicy.foo"`},
		{"ImagePolicyWebhook", "imagePolicy: [" + strings.Repeat("[", 200) + "]", "document is too large: "},
	} {
		path := filepath.Join(t.TempDir(), "file")
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- {name: " + c.plugin +
			", configuration: {" + c.text + "}}"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadAdmissionConfiguration(path)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "--admission-control-config-file "+path) ||
			!strings.Contains(err.Error(), c.want)):
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}
