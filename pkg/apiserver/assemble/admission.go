package assemble

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
)

// accountWait is how long a pod waits for the account "default" of a namespace that was made just now.
const accountWait = 5 * time.Second

// CheckAdmission tells what is wrong with the names of plug-ins, before anything else is there.
func CheckAdmission(enable, disable []string) error {
	_, err := admission.Select(plugins(func(string, string) registry.Store { return nil }), enable, disable)
	return err
}

// plugins is the list of all admission plug-ins. store finds what they read.
func plugins(store func(group, resource string) registry.Store) []admission.Plugin {
	return []admission.Plugin{
		namespacelifecycle.New(store("", "namespaces")),
		limitranger.New(store("", "limitranges")),
		serviceaccount.New(serviceaccount.Config{ServiceAccounts: store("", "serviceaccounts"), Suffix: func() string { return registry.RandomSuffix(5) }, Wait: accountWait}),
		noderestriction.New(noderestriction.Config{Pods: store("", "pods"), Nodes: store("", "nodes")}),
		taintnodesbycondition.New(),
		priority.New(store(schedulingv1.GroupName, "priorityclasses")),
		defaulttolerationseconds.New(defaulttolerationseconds.Default, defaulttolerationseconds.Default),
		claimresize.New(),
		denyserviceexternalips.New(),
		runtimeclass.New(),
		resourcequota.New(store("", "resourcequotas"), time.Now),
	}
}

// newAdmission chooses the plug-ins that the options ask for. With RBAC, nobody may hand out more rights than he has.
func newAdmission(o *Options, c *catalog.Catalog, may *authorization) (*admission.Chain, error) {
	chosen, err := admission.Select(plugins(late(c)), o.EnableAdmission, o.DisableAdmission)
	if err != nil {
		return nil, err
	}
	if may.usesRBAC {
		chosen = append(chosen, rbacescalation.New(rbacescalation.Config{Rules: may.rbac, Authorizer: may.authorizer}))
	}
	return admission.NewChain(chosen...), nil
}

// late finds stores that are there when they are used.
func late(c *catalog.Catalog) func(group, resource string) registry.Store {
	return func(group, resource string) registry.Store {
		return c.Late(schema.GroupResource{Group: group, Resource: resource})
	}
}
