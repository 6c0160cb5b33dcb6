// Package nft enforces NetworkPolicies on a node with nftables: a table of its own per IP family, which no proxy
// touches.
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

	"bonsai/pkg/network"
	"bonsai/pkg/nftables"
)

const tableName = "bonsai-network-policies"

// PolicyTable is the table of one family that enforces NetworkPolicies. Apply must not be called concurrently.
type PolicyTable struct {
	rules *nftables.Ledger[policyPart]
	// refused is what policies should be that the kernel would not take: pods that they isolate are isolated, and they
	// allow nothing.
	refused map[policyPart]nftables.Fragment
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
	return &PolicyTable{refused: map[policyPart]nftables.Fragment{},
		rules: nftables.NewLedger(nftables.LedgerConfig[policyPart]{
			Tool: nft, Family: nftables.Family(six), Table: tableName, Whose: "NetworkPolicies",
			Entrance: "forward-" + egressWords().name, Compare: compareParts, Log: log,
		})}
}

// OpenPolicyTable returns the table with the system's nft tool. It fails where that is missing or the process may not
// use it.
func OpenPolicyTable(six bool, log *slog.Logger) (*PolicyTable, error) {
	tool, err := nftables.Open(six, tableName)
	if err != nil {
		return nil, err
	}
	return NewPolicyTable(tool, six, log), nil
}

// RemovePolicies deletes the tables of both families, if they are there.
func RemovePolicies(ctx context.Context) error { return nftables.Remove(ctx, tableName) }

// Apply brings the kernel to u and to what earlier calls could not write, all that changed in one transaction. If the
// kernel refuses a policy's rules, the policy allows nothing, and the error names it; what else it refuses stays as it
// was.
func (t *PolicyTable) Apply(ctx context.Context, u network.PolicyUpdate) error {
	t.put(&u)
	refused, err := t.rules.Flush(ctx)
	if err != nil || len(refused) == 0 {
		return err
	}
	for part := range refused {
		if part.kind == policyRules {
			t.refused[part] = t.rules.Pending(part)
			t.rules.Put(part, silent(t.rules.Pending(part)))
		}
	}
	// Parts that refer to a refused policy were refused with it, through no fault of their own.
	t.rules.Retry()
	still, err := t.rules.Flush(ctx)
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
func (t *PolicyTable) put(u *network.PolicyUpdate) {
	ip := t.rules.Family
	for part, f := range t.refused {
		t.rules.Put(part, f)
	}
	clear(t.refused)
	t.rules.Put(policyPart{}, policyBase(ip, u))
	for key, there := range u.Groups {
		f := nftables.Fragment{}
		if there {
			f.Sets = map[string]nftables.Set{groupName(key): {Type: nftables.AddressType(ip)}}
		}
		t.rules.Put(policyPart{kind: groupPart, name: key}, f)
	}
	for port, there := range u.Named {
		f := nftables.Fragment{}
		if there {
			f.Sets = map[string]nftables.Set{
				namedPortName(port): {Type: nftables.AddressType(ip) + " . inet_proto . inet_service"}}
		}
		t.rules.Put(policyPart{kind: portPart, name: namedPortName(port)}, f)
	}
	for name, p := range u.Policies {
		t.rules.Put(policyPart{policyRules, name.Namespace, name.Name}, policyFragment(ip, name, p))
	}
	for key, i := range u.Isolations {
		t.rules.Put(policyPart{kind: isolationPart, name: key}, isolationFragment(ip, key, i))
	}
	for name, p := range u.Pods {
		t.rules.Put(policyPart{podPart, name.Namespace, name.Name}, podFragment(ip, p))
	}
}
