package assemble

import (
	"log/slog"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/always"
	"bonsai/pkg/apiserver/admission/alwayspullimages"
	"bonsai/pkg/apiserver/admission/certificates"
	"bonsai/pkg/apiserver/admission/claimresize"
	"bonsai/pkg/apiserver/admission/defaultingressclass"
	"bonsai/pkg/apiserver/admission/defaultstorageclass"
	"bonsai/pkg/apiserver/admission/defaulttolerationseconds"
	"bonsai/pkg/apiserver/admission/denyserviceexternalips"
	"bonsai/pkg/apiserver/admission/eventratelimit"
	"bonsai/pkg/apiserver/admission/extendedresourcetoleration"
	"bonsai/pkg/apiserver/admission/idle"
	"bonsai/pkg/apiserver/admission/imagepolicywebhook"
	"bonsai/pkg/apiserver/admission/limitpodhardantiaffinitytopology"
	"bonsai/pkg/apiserver/admission/limitranger"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/admission/namespaceautoprovision"
	"bonsai/pkg/apiserver/admission/namespaceexists"
	"bonsai/pkg/apiserver/admission/namespacelifecycle"
	"bonsai/pkg/apiserver/admission/nodedeclaredfeatures"
	"bonsai/pkg/apiserver/admission/noderestriction"
	"bonsai/pkg/apiserver/admission/ownerreferences"
	"bonsai/pkg/apiserver/admission/paramaccess"
	"bonsai/pkg/apiserver/admission/podnodeselector"
	"bonsai/pkg/apiserver/admission/podresize"
	"bonsai/pkg/apiserver/admission/podsecurity"
	"bonsai/pkg/apiserver/admission/podtolerationrestriction"
	"bonsai/pkg/apiserver/admission/podtopologylabels"
	"bonsai/pkg/apiserver/admission/policies"
	"bonsai/pkg/apiserver/admission/priority"
	"bonsai/pkg/apiserver/admission/rbacescalation"
	"bonsai/pkg/apiserver/admission/resourcequota"
	"bonsai/pkg/apiserver/admission/runtimeclass"
	"bonsai/pkg/apiserver/admission/serviceaccount"
	"bonsai/pkg/apiserver/admission/storageobjectinuseprotection"
	"bonsai/pkg/apiserver/admission/taintnodesbycondition"
	"bonsai/pkg/apiserver/admission/webhooks"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/fieldmanager"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/serviceresolver"
	"bonsai/pkg/apiserver/webhook"
)

// accountWait is how long a pod waits for the account "default" of a namespace that was made just now.
const accountWait = 5 * time.Second

// available returns all plug-ins as they are before anything else is there: only their names and places count.
func available() []admission.Plugin {
	return plugins(nil, webhooks.New(webhooks.Config{}), policies.New(policies.Config{}), &Options{}, nil)
}

// CheckAdmission tells what is wrong with the names of plug-ins, before anything else is there.
func CheckAdmission(enable, disable []string) error {
	_, err := admission.Select(available(), enable, disable)
	return err
}

// AdmissionUsage describes a flag that enables or disables plug-ins.
func AdmissionUsage(what string) string { return admission.Usage(what, available()) }

// plugins returns all admission plug-ins. They read the objects of c and the settings in o, and ask may for the rights
// of users.
func plugins(c *catalog.Catalog, hooks *webhooks.Plugins, rules *policies.Plugins, o *Options,
	may authz.Authorizer) []admission.Plugin {
	store := late(c)
	namespaces := store("", "namespaces").Shared()
	return append(idle.Plugins(),
		always.Admit(),
		namespaceautoprovision.New(store("", "namespaces")),
		namespaceexists.New(namespaces),
		limitpodhardantiaffinitytopology.New(),
		alwayspullimages.New(),
		imagepolicywebhook.New(o.Admission.ImagePolicy, time.Now),
		podnodeselector.New(namespaces, o.Admission.NodeSelectors),
		podtolerationrestriction.New(namespaces, o.Admission.Tolerations),
		eventratelimit.New(o.Admission.EventLimits),
		extendedresourcetoleration.New(),
		ownerreferences.New(c, may),
		podtopologylabels.New(store("", "nodes").Shared()),
		always.Deny(),
		namespacelifecycle.New(namespaces),
		limitranger.New(store("", "limitranges")),
		serviceaccount.New(serviceaccount.Config{ServiceAccounts: store("", "serviceaccounts"), Suffix: func() string {
			return registry.RandomSuffix(5)
		}, Wait: accountWait}),
		noderestriction.New(noderestriction.Config{Pods: store("", "pods"), Nodes: store("", "nodes"),
			Claims:  store("", "persistentvolumeclaims"),
			Volumes: store("", "persistentvolumes"), Drivers: store(storagev1.GroupName, "csidrivers"),
			ServiceAccounts: store("", "serviceaccounts"),
			Authorizer:      may}),
		taintnodesbycondition.New(),
		podsecurity.New(podsecurity.Config{Namespaces: namespaces, Pods: store("", "pods"),
			Configuration: o.Admission.PodSecurity, Metrics: o.Metrics, Now: time.Now}),
		priority.New(store(schedulingv1.GroupName, "priorityclasses").Shared()),
		defaulttolerationseconds.New(seconds(o.NotReadySeconds), seconds(o.UnreachableSeconds)),
		defaultstorageclass.New(store(storagev1.GroupName, "storageclasses")),
		storageobjectinuseprotection.New(),
		claimresize.New(store(storagev1.GroupName, "storageclasses")),
		defaultingressclass.New(store(networkingv1.GroupName, "ingressclasses")),
		denyserviceexternalips.New(),
		runtimeclass.New(store(nodev1.GroupName, "runtimeclasses")),
		certificates.Approval(may),
		certificates.Signing(may),
		certificates.Attest(may),
		certificates.SubjectRestriction(),
		nodedeclaredfeatures.New(store("", "nodes")),
		podresize.New(store("", "nodes")),
		rules.Mutating(),
		hooks.Mutating(),
		rules.Validating(),
		hooks.Validating(),
		resourcequota.New(store("", "resourcequotas"), store("resource.k8s.io", "deviceclasses"), store("", "pods"),
			o.Admission.Limited, time.Now),
	)
}

// seconds is how long pods stay on a node that fails; nil: as long as by default.
func seconds(given *int64) int64 {
	if given == nil {
		return defaulttolerationseconds.Default
	}
	return *given
}

// newWebhooks makes the plug-ins that call webhooks, in the way that client knows.
func newWebhooks(o *Options, m *match.Matcher, client *webhook.Client, s *sources, log *slog.Logger) (*webhooks.Plugins,
	error) {
	hooks := webhooks.New(webhooks.Config{
		Mutating:   s.of(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations"),
		Validating: s.of(admissionregistrationv1.GroupName, "validatingwebhookconfigurations"),
		Matcher:    m, Client: client, MutatingCredentials: o.Admission.MutatingWebhooks,
		ValidatingCredentials: o.Admission.ValidatingWebhooks, Metrics: o.Metrics, Log: log,
	})
	return hooks, s.missing
}

// newPolicies makes the plug-ins of policies.
func newPolicies(o *Options, m *match.Matcher, fields *fieldmanager.Manager, s *sources,
	log *slog.Logger) (*policies.Plugins, error) {
	rules := policies.New(policies.Config{
		Mutating:           s.of(admissionregistrationv1.GroupName, "mutatingadmissionpolicies"),
		MutatingBindings:   s.of(admissionregistrationv1.GroupName, "mutatingadmissionpolicybindings"),
		Validating:         s.of(admissionregistrationv1.GroupName, "validatingadmissionpolicies"),
		ValidatingBindings: s.of(admissionregistrationv1.GroupName, "validatingadmissionpolicybindings"),
		Matcher:            m, Stores: m.Catalog.Late, Merger: fields, Metrics: o.Metrics, Log: log,
	})
	return rules, s.missing
}

// newWebhookClient makes the client for webhooks of all kinds. Services are of the cluster; a URL may name any host,
// and counts to the control plane, as in Kubernetes.
func newWebhookClient(c *catalog.Catalog, ways *selector.Selector) *webhook.Client {
	return webhook.New(webhook.Config{
		Resolver:   serviceresolver.New(late(c)("", "services"), late(c)(discoveryv1.GroupName, "endpointslices")),
		ToServices: ways.Dial(selector.Cluster), ToURLs: ways.Dial(selector.ControlPlane)})
}

// newAdmission chooses the plug-ins that the options ask for. With RBAC, nobody may hand out more rights than he has.
func newAdmission(o *Options, c *catalog.Catalog, hooks *webhooks.Plugins, rules *policies.Plugins,
	may *authorization, log *slog.Logger) (*admission.Chain, error) {
	chosen, err := admission.Select(plugins(c, hooks, rules, o, may.authorizer), o.EnableAdmission,
		o.DisableAdmission)
	if err != nil {
		return nil, err
	}
	if err := o.Admission.complete(o.EnableAdmission); err != nil {
		return nil, err
	}
	for i := range chosen {
		if p := &chosen[i]; p.Deprecated {
			log.Warn(p.Name + " admission controller is deprecated. Please remove this controller from your configuration files and scripts.")
		} else if p.Idle != "" && slices.Contains(o.EnableAdmission, p.Name) {
			log.Info("the enabled admission plug-in has nothing to do", "plugin", p.Name, "reason", p.Idle)
		}
	}
	chosen = append(chosen, paramaccess.New(paramaccess.Config{Catalog: c, Stores: c.Late, Authorizer: may.authorizer}))
	if may.usesRBAC {
		chosen = append(chosen, rbacescalation.New(rbacescalation.Config{Rules: may.rbac, Authorizer: may.authorizer}))
	}
	chain := admission.NewChain(chosen...)
	if o.Metrics != nil {
		chain.Measure(o.Metrics)
	}
	return chain, nil
}

// late finds stores that are there when they are used.
func late(c *catalog.Catalog) func(group, resource string) registry.Store {
	return func(group, resource string) registry.Store {
		return c.Late(schema.GroupResource{Group: group, Resource: resource})
	}
}
