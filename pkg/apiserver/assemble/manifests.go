package assemble

import (
	"context"
	"log/slog"
	"time"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission/manifests"
	"bonsai/pkg/apiserver/admission/policies"
	"bonsai/pkg/apiserver/admission/webhooks"
	"bonsai/pkg/apiserver/storage/follow"
)

// newManifests informs the plug-ins of webhooks and policies that files describe, and returns what keeps them informed.
func newManifests(o *Options, rows []resources.Row, hooks *webhooks.Plugins, rules *policies.Plugins,
	log *slog.Logger) (runs []func(context.Context) error, err error) {
	if len(o.Admission.Manifests) == 0 {
		return nil, nil
	}
	counted := manifests.NewMetrics(o.Metrics, o.Hostname)
	kind := func(resource string, into follow.Handler) manifests.Kind {
		for i := range rows {
			if row := &rows[i]; row.GVK.Group == "admissionregistration.k8s.io" && row.GVK.Version == "v1" &&
				row.Resource == resource {
				return manifests.Kind{Row: row, Into: into}
			}
		}
		return manifests.Kind{Into: into}
	}
	mutatingHooks, validatingHooks := hooks.FromFiles()
	mutating, validating := rules.FromFiles()
	for _, p := range []struct {
		name, what string
		kinds      []manifests.Kind
	}{
		{"MutatingAdmissionPolicy", "policy", []manifests.Kind{
			kind("mutatingadmissionpolicies", mutating.Policies),
			kind("mutatingadmissionpolicybindings", mutating.Bindings)}},
		{"MutatingAdmissionWebhook", "webhook", []manifests.Kind{
			kind("mutatingwebhookconfigurations", mutatingHooks)}},
		{"ValidatingAdmissionPolicy", "policy", []manifests.Kind{
			kind("validatingadmissionpolicies", validating.Policies),
			kind("validatingadmissionpolicybindings", validating.Bindings)}},
		{"ValidatingAdmissionWebhook", "webhook", []manifests.Kind{
			kind("validatingwebhookconfigurations", validatingHooks)}},
	} {
		path := o.Admission.Manifests[p.name]
		if path == "" {
			continue
		}
		d, err := manifests.Load(manifests.Config{Plugin: p.name, What: p.what, Path: path, Kinds: p.kinds,
			Metrics: counted, Now: time.Now, Log: log})
		if err != nil {
			return nil, err
		}
		runs = append(runs, d.Run)
	}
	return runs, nil
}
