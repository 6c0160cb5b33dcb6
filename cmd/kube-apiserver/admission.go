package main

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/claimresize"
	"bonsai/pkg/apiserver/admission/defaulttolerationseconds"
	"bonsai/pkg/apiserver/admission/denyserviceexternalips"
	"bonsai/pkg/apiserver/admission/limitranger"
	"bonsai/pkg/apiserver/admission/namespacelifecycle"
	"bonsai/pkg/apiserver/admission/noderestriction"
	"bonsai/pkg/apiserver/admission/priority"
	"bonsai/pkg/apiserver/admission/rbacescalation"
	"bonsai/pkg/apiserver/admission/resourcequota"
	"bonsai/pkg/apiserver/admission/runtimeclass"
	"bonsai/pkg/apiserver/admission/serviceaccount"
	"bonsai/pkg/apiserver/admission/taintnodesbycondition"
	"bonsai/pkg/apiserver/registry"
)

// accountWait is how long a pod waits for the account "default" of a namespace that was made just now.
const accountWait = 5 * time.Second

// validateAdmission checks the names of admission plug-ins.
func (o *options) validateAdmission() error {
	_, err := admission.Select(availablePlugins(), o.enableAdmission, o.disableAdmission)
	return err
}

// availablePlugins names the plug-ins below, for checking flags before anything else is there.
func availablePlugins() []admission.Plugin {
	return plugins(&stores{})
}

// plugins is the list of all admission plug-ins.
func plugins(s *stores) []admission.Plugin {
	return []admission.Plugin{
		namespacelifecycle.New(s.of("", "namespaces")),
		limitranger.New(s.of("", "limitranges")),
		serviceaccount.New(serviceaccount.Config{ServiceAccounts: s.of("", "serviceaccounts"), Suffix: func() string { return registry.RandomSuffix(5) }, Wait: accountWait}),
		noderestriction.New(noderestriction.Config{Pods: s.of("", "pods"), Nodes: s.of("", "nodes")}),
		taintnodesbycondition.New(),
		priority.New(s.of(schedulingv1.GroupName, "priorityclasses")),
		defaulttolerationseconds.New(defaulttolerationseconds.Default, defaulttolerationseconds.Default),
		claimresize.New(),
		runtimeclass.New(),
		denyserviceexternalips.New(),
		resourcequota.New(s.of("", "resourcequotas"), time.Now),
	}
}

// newAdmission chooses the plug-ins that the flags ask for. With RBAC, nobody may hand out more rights than he has.
func newAdmission(o *options, s *stores, may *authorization) (*admission.Chain, error) {
	chosen, err := admission.Select(plugins(s), o.enableAdmission, o.disableAdmission)
	if err != nil {
		return nil, err
	}
	if slices.Contains(o.authorizationModes, "RBAC") && s.of(rbacv1.GroupName, "roles") != nil {
		chosen = append(chosen, rbacescalation.New(rbacescalation.Config{Rules: may.rbac, Authorizer: may.authorizer}))
	}
	return admission.NewChain(chosen...), nil
}
