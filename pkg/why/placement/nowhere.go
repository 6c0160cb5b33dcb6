package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// Bounds of what is shown: fixes of the first cause and of each other, and nodes whose fields are evidence.
const (
	maxFirstFixes = 4
	maxOtherFixes = 2
	maxNodes      = 3
)

// nowhere explains a pod that fits on no node: what keeps it off them, and what would change that.
func (q *inquiry) nowhere(ctx context.Context, cluster *simulate.Cluster, info *model.PodInfo) []why.Cause {
	trial := cluster.Try(info)
	if trial.Refused != nil {
		cause := q.refused(ctx, trial.Refused)
		cause.Evidence = append(q.said(), cause.Evidence...)
		return []why.Cause{cause}
	}
	all := seats(trial, info, cluster.Snapshot)
	list := groups(all)
	within, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	s := &search{ctx: within, cluster: cluster, pod: q.pod, info: info, trial: trial, owner: ownerOf(ctx, q.Case,
		q.pod)}
	s.author = q.written(s.owner)
	helps := s.changesThatHelp(all)
	if s.cut {
		q.Note(fmt.Sprintf("Not all changes were tried on all of %s: a smaller one may help, too.",
			why.Count(len(all), "node")))
	}
	w := &writer{inquiry: q, info: info, cluster: cluster, nodes: len(all)}
	var causes []why.Cause
	for i, g := range list {
		cause := w.cause(ctx, g)
		most := maxOtherFixes
		if i == 0 {
			cause.Evidence, most = append(q.said(), cause.Evidence...), maxFirstFixes
		}
		cause.Fixes = fixes(helps, g.key(), most)
		if i == 0 && len(helps) == 0 && g.code == insufficientResource {
			name := corev1.ResourceName(g.what)
			cause.Fixes = append(cause.Fixes, why.Fix{Text: fmt.Sprintf("Add a node with %s free %s.", amount(name,
				info.Requests.Of(name)), called(name))})
		}
		causes = append(causes, cause)
	}
	return uneven(list, causes, w.topologyKeys())
}

// uneven puts what keeps the pod off other nodes that it is meant for below the spread that forbids the rest: a node of
// another domain would take the pod if it could, so only both together are the cause.
func uneven(list []*group, causes []why.Cause, keys []string) []why.Cause {
	if len(list) == 0 || list[0].code != topologySpread {
		return causes
	}
	n := 1
	for n < len(list) && list[n].meant > 0 {
		n++
	}
	causes[0].Because = append(causes[0].Because, causes[1:n]...)
	rest := causes[:1]
	for i := n; i < len(causes); i++ {
		// A node that counts for the spread and has a taint is why its domain stays empty.
		if i < len(list) && list[i].code == untoleratedTaint && list[i].counts(keys) {
			causes[0].Because = append(causes[0].Because, causes[i])
			continue
		}
		rest = append(rest, causes[i])
	}
	return rest
}

// counts reports whether a node of the group is in a domain of one of the keys.
func (g *group) counts(keys []string) bool {
	return slices.ContainsFunc(g.seats, func(s *seat) bool {
		return slices.ContainsFunc(keys, func(k string) bool {
			_, ok := s.node.Node.Labels[k]
			return ok
		})
	})
}

// fixes words the changes that help against one cause.
func fixes(helps []found, key string, most int) (list []why.Fix) {
	for _, f := range helps {
		if f.key != key || len(list) == most {
			continue
		}
		var texts []string
		var commands []why.CommandLine
		whole := true
		for i, c := range f.changes {
			text := c.text
			if i > 0 {
				text = strings.ToLower(text[:1]) + text[1:]
			}
			texts, commands, whole = append(texts, text), append(commands, c.command), whole && c.command != ""
		}
		fix := why.Fix{Text: strings.Join(texts, ", and ") + fmt.Sprintf("; the pod then fits on node %s.", f.node)}
		if whole {
			fix.Command = why.Then(commands...)
		}
		list = append(list, fix)
	}
	return list
}

// refused explains a pod that a plug-in refuses as a whole.
func (q *inquiry) refused(ctx context.Context, st *framework.Status) why.Cause {
	switch st.Plugin {
	case "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits":
		if cause, ok := q.claims(ctx, st); ok {
			return cause
		}
	case "DynamicResources":
		return q.resourceClaims(ctx, st)
	}
	code := otherRefusal
	if st.Plugin == "NodeAffinity" {
		code = affinityMismatch
	}
	return why.Cause{Code: code, Text: fmt.Sprintf("The scheduler's plug-in %s refuses the pod: %s.", st.Plugin,
		why.Quote(st.Message()))}
}

// claims explains a pod whose claims cannot be used, with the claims' own causes.
func (q *inquiry) claims(ctx context.Context, st *framework.Status) (why.Cause, bool) {
	cause := why.Cause{Code: volumeCode(st)}
	var missing, unbound, ending []string
	for _, pc := range simulate.Info(q.pod).Claims {
		o := why.Object{Kind: "PersistentVolumeClaim", Namespace: q.pod.Namespace, Name: pc.Name}
		c, known := why.Get[corev1.PersistentVolumeClaim](ctx, q.World, q.pod.Namespace, pc.Name)
		switch {
		case c == nil && !known:
			continue
		case c == nil:
			missing = append(missing, pc.Name)
			cause.Evidence = append(cause.Evidence, why.Absent(o.Kind, o.Namespace, o.Name))
		case c.DeletionTimestamp != nil:
			ending = append(ending, pc.Name)
			cause.Evidence = append(cause.Evidence, why.See(o, ".metadata.deletionTimestamp", "set",
				*c.DeletionTimestamp))
		case c.Status.Phase != corev1.ClaimBound:
			unbound = append(unbound, pc.Name)
			cause.Evidence = append(cause.Evidence, why.See(o, ".status.phase", string(c.Status.Phase)))
		default:
			continue
		}
		if because, err := q.Causes(ctx, o); err == nil {
			cause.Because = append(cause.Because, because...)
		}
	}
	switch {
	case len(missing) > 0:
		cause.Code = claimMissing
		cause.Text = fmt.Sprintf("The pod uses %s %s, which %s not exist in namespace %s.", claimWord(missing),
			why.And(missing), does(missing), q.pod.Namespace)
	case len(ending) > 0:
		cause.Code = "ClaimTerminating"
		cause.Text = fmt.Sprintf("The pod uses %s %s, which somebody has deleted.", claimWord(ending), why.And(ending))
	case len(unbound) > 0 && cause.Code == claimNotBound:
		cause.Text = fmt.Sprintf("The pod waits for %s %s, which %s no volume yet.", claimWord(unbound),
			why.And(unbound),
			has(unbound))
	default:
		return why.Cause{}, false
	}
	return cause, true
}

func claimWord(names []string) string {
	if len(names) == 1 {
		return "the claim"
	}
	return "the claims"
}

func does(names []string) string {
	if len(names) == 1 {
		return "does"
	}
	return "do"
}

func has(names []string) string {
	if len(names) == 1 {
		return "has"
	}
	return "have"
}

// resourceClaims explains a pod whose claims on devices are not there or cannot be served.
func (q *inquiry) resourceClaims(ctx context.Context, st *framework.Status) why.Cause {
	cause := why.Cause{Code: deviceUnavailable, Text: "The pod's claims on devices cannot be served: " +
		why.Quote(st.Message()) + "."}
	for _, name := range q.claimNames() {
		o := why.Object{Group: "resource.k8s.io", Kind: "ResourceClaim", Namespace: q.pod.Namespace, Name: name}
		cause.Evidence = append(cause.Evidence, why.See(q.self, ".spec.resourceClaims", name))
		if because, err := q.Causes(ctx, o); err == nil {
			cause.Because = append(cause.Because, because...)
		}
	}
	return cause
}

// claimNames are the ResourceClaims that the pod names, and those that were made for it.
func (q *inquiry) claimNames() (names []string) {
	for _, c := range q.pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range q.pod.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil && !slices.Contains(names, *c.ResourceClaimName) {
			names = append(names, *c.ResourceClaimName)
		}
	}
	return names
}
