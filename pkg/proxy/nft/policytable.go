package nft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
)

// policyTableName is not that of the services' table: a stock proxy, or one that leaves policies to others, knows nothing of it.
const policyTableName = "kube-proxy-network-policies"

// PolicyTable is the table of one family that enforces NetworkPolicies. Apply must not be called concurrently.
type PolicyTable struct {
	rules ledger[policyPart]
	// refused is what policies should be that the kernel would not take: pods that they isolate are isolated, and they allow nothing.
	refused map[policyPart]fragment
}

// policyPart names a part of the table; the zero value is what is always there.
type policyPart struct {
	kind      string
	namespace string
	name      string
}

// Kinds of parts.
const (
	groupPart     = "group"
	portPart      = "port"
	policyRules   = "policy"
	isolationPart = "isolation"
	podPart       = "pod"
)

func compareParts(a, b policyPart) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// NewPolicyTable returns the table of family 4 or 6, using nft. Nothing is written before the first Apply.
func NewPolicyTable(nft knftables.Interface, six bool, log *slog.Logger) *PolicyTable {
	t := &PolicyTable{refused: map[policyPart]fragment{}, rules: ledger[policyPart]{
		nft: nft, ip: family(six), name: policyTableName, whose: "NetworkPolicies, for kube-proxy", entrance: "forward-" + egressWords().name, compare: compareParts, log: log,
	}}
	t.rules.reset()
	return t
}

// OpenPolicyTable returns the table with the system's nft tool. It fails where that is missing or the process may not use it.
func OpenPolicyTable(six bool, log *slog.Logger) (*PolicyTable, error) {
	tool, err := open(six, policyTableName)
	if err != nil {
		return nil, err
	}
	return NewPolicyTable(tool, six, log), nil
}

// RemovePolicies deletes the tables of both families, if they are there.
func RemovePolicies(ctx context.Context) error { return remove(ctx, policyTableName) }

// Apply brings the kernel to u and to what earlier calls could not write, all that changed in one transaction. If the kernel refuses a
// policy's rules, the policy allows nothing, and the error names it; what else it refuses stays as it was.
func (t *PolicyTable) Apply(ctx context.Context, u proxy.PolicyUpdate) error {
	t.put(&u)
	refused, err := t.rules.flush(ctx)
	if err != nil || len(refused) == 0 {
		return err
	}
	for part := range refused {
		if part.kind == policyRules {
			t.refused[part] = t.rules.pending[part]
			t.rules.put(part, t.rules.pending[part].silent())
		}
	}
	// What names a refused policy was refused with it, and is nobody's fault.
	clear(t.rules.refused)
	still, err := t.rules.flush(ctx)
	if err != nil {
		return err
	}
	maps.Copy(refused, still)
	var errs []error
	for _, part := range slices.SortedFunc(maps.Keys(refused), compareParts) {
		if _, unwritten := still[part]; unwritten || part.kind == policyRules {
			errs = append(errs, fmt.Errorf("%s %s/%s: %w", part.kind, part.namespace, part.name, refused[part]))
		}
	}
	return errors.Join(errs...)
}

// put notes what changed, and tries again what was refused.
func (t *PolicyTable) put(u *proxy.PolicyUpdate) {
	ip := t.rules.ip
	for part, f := range t.refused {
		t.rules.put(part, f)
	}
	clear(t.refused)
	t.rules.put(policyPart{}, policyBase(ip, u))
	for key, there := range u.Groups {
		f := fragment{}
		if there {
			f.sets = map[string]set{groupName(key): {typ: addressType(ip)}}
		}
		t.rules.put(policyPart{kind: groupPart, name: key}, f)
	}
	for port, there := range u.Named {
		f := fragment{}
		if there {
			f.sets = map[string]set{namedPortName(port): {typ: addressType(ip) + " . inet_proto . inet_service"}}
		}
		t.rules.put(policyPart{kind: portPart, name: namedPortName(port)}, f)
	}
	for name, p := range u.Policies {
		t.rules.put(policyPart{policyRules, name.Namespace, name.Name}, policyFragment(ip, name, p))
	}
	for key, i := range u.Isolations {
		t.rules.put(policyPart{kind: isolationPart, name: key}, isolationFragment(ip, key, i))
	}
	for name, p := range u.Pods {
		t.rules.put(policyPart{podPart, name.Namespace, name.Name}, podFragment(ip, p))
	}
}
