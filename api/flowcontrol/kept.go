package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The objects that every API server of 1.36 keeps: two of a kind are mandatory and cannot be changed, the others are
// suggested.

// MandatoryLevels are the levels that always exist, so that every request has a level.
func MandatoryLevels() []priorityLevel {
	zero := int32(0)
	exempt := level(flowcontrolv1.PriorityLevelConfigurationNameExempt, flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementExempt,
		Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{NominalConcurrencyShares: &zero,
			LendablePercent: &zero},
	})
	return []priorityLevel{exempt, limited(flowcontrolv1.PriorityLevelConfigurationNameCatchAll, 5, 0, nil)}
}

// SuggestedLevels are the levels that a server has unless somebody says otherwise.
func SuggestedLevels() []priorityLevel {
	return []priorityLevel{
		limited("system", 30, 33, queuing(64, 6)),
		limited("node-high", 40, 25, queuing(64, 6)),
		limited("leader-election", 10, 0, queuing(16, 4)),
		limited("workload-high", 40, 50, queuing(128, 6)),
		limited("workload-low", 100, 90, queuing(128, 6)),
		limited("global-default", 20, 50, queuing(128, 6)),
	}
}

// MandatorySchemas are the first of all schemas, for those who must be able to repair things, and the last.
func MandatorySchemas() []flowSchema {
	return []flowSchema{
		schema(flowcontrolv1.FlowSchemaNameExempt, flowcontrolv1.PriorityLevelConfigurationNameExempt, exemptPrecedence,
			"", everything(group("system:masters"))),
		schema(flowcontrolv1.FlowSchemaNameCatchAll, flowcontrolv1.PriorityLevelConfigurationNameCatchAll,
			flowcontrolv1.FlowSchemaMaxMatchingPrecedence, byUser, everything(everybody()...)),
	}
}

// SuggestedSchemas say who goes to which of the suggested levels.
func SuggestedSchemas() []flowSchema {
	leases := []string{"leases"}
	controllerManager, scheduler, nodes := userNamed("system:kube-controller-manager"),
		userNamed("system:kube-scheduler"), group("system:nodes")
	return []flowSchema{
		schema("probes", flowcontrolv1.PriorityLevelConfigurationNameExempt, 2, "",
			flowcontrolv1.PolicyRulesWithSubjects{Subjects: everybody(),
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{
					{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/readyz", "/livez"}}}}),
		schema("system-leader-election", "leader-election", 100, byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: []flowcontrolv1.Subject{controllerManager, scheduler, systemAccounts()},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				{Verbs: []string{"get", "create", "update"}, APIGroups: []string{"coordination.k8s.io"},
					Resources: leases, Namespaces: []string{all}}}}),
		schema("system-node-high", "node-high", 400, byUser,
			flowcontrolv1.PolicyRulesWithSubjects{Subjects: []flowcontrolv1.Subject{nodes},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{
					{Verbs: []string{all}, APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"},
						ClusterScope: true, Namespaces: []string{all}},
					{Verbs: []string{all}, APIGroups: []string{"coordination.k8s.io"}, Resources: leases,
						Namespaces: []string{all}},
				}}),
		schema("system-nodes", "system", 500, byUser, everything(nodes)),
		schema("kube-controller-manager", "workload-high", 800, byNamespace, everything(controllerManager)),
		schema("kube-scheduler", "workload-high", 800, byNamespace, everything(scheduler)),
		schema("kube-system-service-accounts", "workload-high", 900, byNamespace, everything(systemAccounts())),
		schema("service-accounts", "workload-low", 9000, byUser, everything(group("system:serviceaccounts"))),
		schema("global-default", "global-default", 9900, byUser, everything(everybody()...)),
	}
}

const (
	byUser      = flowcontrolv1.FlowDistinguisherMethodByUserType
	byNamespace = flowcontrolv1.FlowDistinguisherMethodByNamespaceType
)

// kept is the metadata of an object that servers keep as it is here.
func kept(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}}
}

func level(name string, spec flowcontrolv1.PriorityLevelConfigurationSpec) priorityLevel {
	return priorityLevel{ObjectMeta: kept(name), Spec: spec}
}

// limited is a Limited level, which rejects what it cannot run unless it has queues.
func limited(name string, shares, lendable int32, queues *flowcontrolv1.QueuingConfiguration) priorityLevel {
	response := flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	if queues != nil {
		response = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: queues}
	}
	return level(name, flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: &shares,
			LendablePercent: &lendable, LimitResponse: response},
	})
}

func queuing(queues, hand int32) *flowcontrolv1.QueuingConfiguration {
	return &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: hand, QueueLengthLimit: defaultQueueLength}
}

// schema has one rule; method "" tells no flows apart.
func schema(name, level string, precedence int32, method flowcontrolv1.FlowDistinguisherMethodType,
	rule flowcontrolv1.PolicyRulesWithSubjects) flowSchema {
	f := flowSchema{ObjectMeta: kept(name), Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		MatchingPrecedence:         precedence,
		Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rule},
	}}
	if method != "" {
		f.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: method}
	}
	return f
}

// everything that subjects may ask.
func everything(subjects ...flowcontrolv1.Subject) flowcontrolv1.PolicyRulesWithSubjects {
	any := []string{all}
	return flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: subjects,
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{
			{Verbs: any, APIGroups: any, Resources: any, ClusterScope: true, Namespaces: any}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: any, NonResourceURLs: any}},
	}
}

func everybody() []flowcontrolv1.Subject {
	return []flowcontrolv1.Subject{group("system:unauthenticated"), group("system:authenticated")}
}

func group(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}}
}

func userNamed(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}}
}

func systemAccounts() flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount,
		ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: metav1.NamespaceSystem,
			Name: flowcontrolv1.NameAll}}
}
