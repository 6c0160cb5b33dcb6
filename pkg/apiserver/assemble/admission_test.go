package assemble

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/policies"
	"bonsai/pkg/apiserver/admission/webhooks"
)

// TestAllPlugins: every plug-in that Kubernetes has can be enabled and disabled.
func TestAllPlugins(t *testing.T) {
	t.Parallel()
	if err := CheckAdmission(admission.Known(), nil); err != nil {
		t.Error(err)
	}
	if err := CheckAdmission(nil, admission.Known()); err != nil {
		t.Error(err)
	}
}

// TestIdlePlugins: a plug-in without work has none only as long as what it would look at is not served.
func TestIdlePlugins(t *testing.T) {
	t.Parallel()
	for _, gr := range []schema.GroupResource{
		{Group: "scheduling.k8s.io", Resource: "podgroups"}, {Group: "scheduling.k8s.io", Resource: "workloads"},
	} {
		if slices.ContainsFunc(rows.All(), func(r resources.Row) bool { return r.GroupResource() == gr }) {
			t.Errorf("%s are served: their admission plug-in has something to do", gr)
		}
	}
	for _, p := range available() {
		works := p.Mutator != nil || p.Validator != nil
		if needs := p.Name == "ImagePolicyWebhook"; works == (p.Idle != "") && !needs {
			t.Errorf("%s: works: %v, idle: %q", p.Name, works, p.Idle)
		}
	}
}

// TestAdmissionNotes: the log says which plug-ins are deprecated, and which do nothing although they were asked for.
func TestAdmissionNotes(t *testing.T) {
	t.Parallel()
	said := func(o Options) (string, error) {
		var log bytes.Buffer
		_, err := newAdmission(&o, nil, webhooks.New(webhooks.Config{}), policies.New(policies.Config{}),
			&authorization{}, slog.New(slog.NewTextHandler(&log, nil)))
		return log.String(), err
	}
	if got, err := said(Options{}); err != nil || got != "" {
		t.Errorf("by default: %v %s", err, got)
	}
	got, err := said(Options{EnableAdmission: []string{"AlwaysAdmit", "AlwaysDeny", "PodGroupProtection"}})
	for _, want := range []string{
		"AlwaysAdmit admission controller is deprecated. Please remove this controller from your configuration files and scripts.",
		"AlwaysDeny admission controller is deprecated. Please remove this controller from your configuration files and scripts.",
		`plugin=PodGroupProtection reason="PodGroups (scheduling.k8s.io/v1beta1) are not served"`,
	} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v %s\nlacks %s", err, got, want)
		}
	}
	_, err = said(Options{EnableAdmission: []string{"EventRateLimit", "ImagePolicyWebhook"}})
	for _, name := range []string{"EventRateLimit", "ImagePolicyWebhook"} {
		if want := "the admission plug-in " + name + " is enabled and needs a configuration"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
