package create

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func namespace() kind {
	return kind{
		use: "namespace NAME [--dry-run=server|client|none]", aliases: []string{"ns"}, cluster: true,
		short: "Create a namespace with the specified name", long: "Create a namespace with the specified name.",
		example: "  # Create a new namespace named my-namespace\n  kubectl create namespace my-namespace",
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			return &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: g.meta()}, nil
		},
	}
}

func serviceAccount() kind {
	return kind{
		use: "serviceaccount NAME [--dry-run=server|client|none]", aliases: []string{"sa"},
		short:   "Create a service account with the specified name",
		long:    "Create a service account with the specified name.",
		example: "  # Create a new service account named my-service-account\n  kubectl create serviceaccount my-service-account",
		failed:  "failed to create serviceaccount: ",
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			return &corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: g.meta()}, nil
		},
	}
}

func priorityClass() kind {
	var value int32
	var global bool
	var description, policy string
	return kind{
		use:     "priorityclass NAME --value=VALUE --global-default=BOOL [--dry-run=server|client|none]",
		example: "  # Create a priority\n  kubectl create priorityclass high --value=1000 --description=urgent\n\n  # Create one that pods have which name none\n  kubectl create priorityclass usual --value=10 --global-default=true\n\n  # Create one whose pods evict no others\n  kubectl create priorityclass polite --value=1000 --preemption-policy=Never",
		aliases: []string{"pc"}, cluster: true, failed: "failed to create priorityclass: ",
		short: "Create a priority class with the specified name",
		long:  "Create a priority class with the specified name, value, globalDefault and description.",
		flags: func(set *pflag.FlagSet) {
			set.Int32Var(&value, "value", 0, "the value of this priority class.")
			set.BoolVar(&global, "global-default", false,
				"global-default specifies whether this PriorityClass should be considered as the default priority.")
			set.StringVar(&description, "description", "",
				"description is an arbitrary string that usually provides guidelines on when this priority class should be used.")
			set.StringVar(&policy, "preemption-policy", "PreemptLowerPriority",
				"preemption-policy is the policy for preempting pods with lower priority.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			p := corev1.PreemptionPolicy(policy)
			return &schedulingv1.PriorityClass{
				TypeMeta:   metav1.TypeMeta{Kind: "PriorityClass", APIVersion: "scheduling.k8s.io/v1"},
				ObjectMeta: g.meta(), Value: value, GlobalDefault: global, Description: description,
				PreemptionPolicy: &p,
			}, nil
		},
	}
}

func quota() kind {
	var hard, scopes string
	return kind{
		use:     "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2] [--dry-run=server|client|none]",
		example: "  # Create a resource quota\n  kubectl create quota small --hard=cpu=1,memory=1G,pods=2,services=3,secrets=10\n\n  # Create one for pods without requests and limits\n  kubectl create quota best-effort --hard=pods=100 --scopes=BestEffort",
		aliases: []string{"resourcequota"}, failed: "failed to create quota: ",
		short: "Create a quota with the specified name",
		long:  "Create a resource quota with the specified name, hard limits, and optional scopes.",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&hard, "hard", "",
				"A comma-delimited set of resource=quantity pairs that define a hard limit.")
			set.StringVar(&scopes, "scopes", "",
				"A comma-delimited set of quota scopes that must all match each object tracked by the quota.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			list, err := quantities(hard)
			if err != nil {
				return nil, err
			}
			q := &corev1.ResourceQuota{TypeMeta: core("ResourceQuota"), ObjectMeta: g.meta(),
				Spec: corev1.ResourceQuotaSpec{Hard: list}}
			for _, s := range split(scopes) {
				q.Spec.Scopes = append(q.Spec.Scopes, corev1.ResourceQuotaScope(s))
			}
			return q, nil
		},
	}
}

// quantities reads "cpu=1,memory=2Gi"; "" is nil.
func quantities(text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	out := corev1.ResourceList{}
	for _, pair := range strings.Split(text, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || strings.Contains(v, "=") {
			return nil, fmt.Errorf("Invalid argument syntax %v, expected <resource>=<value>", pair)
		}
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return nil, err
		}
		out[corev1.ResourceName(k)] = q
	}
	return out, nil
}

func disruptionBudget() kind {
	var minimum, maximum, selector string
	return kind{
		use:     "poddisruptionbudget NAME --selector=SELECTOR --min-available=N [--dry-run=server|client|none]",
		example: "  # Keep at least one of the pods with a label\n  kubectl create poddisruptionbudget web --selector=app=web --min-available=1\n\n  # Let half of them go at once\n  kubectl create pdb web --selector=app=web --max-unavailable=50%",
		aliases: []string{"pdb"}, failed: "failed to create poddisruptionbudgets: ",
		short: "Create a pod disruption budget with the specified name",
		long:  "Create a pod disruption budget with the specified name, selector, and desired minimum available pods.",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&minimum, "min-available", "",
				"The minimum number or percentage of available pods this budget requires.")
			set.StringVar(&maximum, "max-unavailable", "",
				"The maximum number or percentage of unavailable pods this budget requires.")
			set.StringVar(&selector, "selector", "",
				"A label selector to use for this budget. Only equality-based selector requirements are supported.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			switch {
			case selector == "":
				return nil, errors.New("a selector must be specified")
			case minimum == "" && maximum == "":
				return nil, errors.New("one of min-available or max-unavailable must be specified")
			case minimum != "" && maximum != "":
				return nil, errors.New("min-available and max-unavailable cannot be both specified")
			}
			amount := regexp.MustCompile(`^[0-9]+%?$`)
			if minimum != "" && !amount.MatchString(minimum) {
				return nil, errors.New("invalid format specified for min-available")
			}
			if maximum != "" && !amount.MatchString(maximum) {
				return nil, errors.New("invalid format specified for max-unavailable")
			}
			s, err := metav1.ParseToLabelSelector(selector)
			if err != nil {
				return nil, err
			}
			p := &policyv1.PodDisruptionBudget{
				TypeMeta:   metav1.TypeMeta{Kind: "PodDisruptionBudget", APIVersion: "policy/v1"},
				ObjectMeta: g.meta(), Spec: policyv1.PodDisruptionBudgetSpec{Selector: s},
			}
			if minimum != "" {
				p.Spec.MinAvailable = new(intstr.Parse(minimum))
			} else {
				p.Spec.MaxUnavailable = new(intstr.Parse(maximum))
			}
			return p, nil
		},
	}
}

// core is the type of a kind of the core group.
func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }

// split is strings.Split by commas, nil for "".
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
