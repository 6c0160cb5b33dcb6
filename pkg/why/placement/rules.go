package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
)

// terms words rules about other pods: the pod's own, or those of pods that run.
func (w *writer) terms(g *group, c *why.Cause) {
	switch {
	case g.code == podAffinity:
		w.wanted(g, c)
	case strings.Contains(g.status.Message(), "existing"):
		who := w.keepers(c)
		c.Text = fmt.Sprintf("%s pods that keep the pod away by their anti-affinity: %s.", w.subject(g, "has", "have"),
			why.And(who))
	default:
		who := w.avoided(c)
		c.Text = fmt.Sprintf("%s out by the pod's required anti-affinity to pods that run: %s.",
			w.subject(g, "is", "are"), why.And(who))
	}
}

// wanted words which pods the pod must run with.
func (w *writer) wanted(g *group, c *why.Cause) {
	var parts []string
	for i := range w.info.Terms.Affinity {
		t := &w.info.Terms.Affinity[i]
		var with []string
		for n := range w.cluster.Snapshot.All {
			for _, p := range n.Pods {
				if t.Matches(p.Pod, w.cluster.NamespaceLabels(p.Pod.Namespace)) {
					with = append(with, fmt.Sprintf("%s on %s", p.Key(), n.Name()))
				}
			}
		}
		slices.Sort(with)
		part := fmt.Sprintf("in a %s with a pod that matches %s", t.TopologyKey, t.Selector)
		if len(with) == 0 {
			part += ", and no pod on a node does"
		} else {
			part += ": " + why.And(with)
		}
		parts = append(parts, part)
	}
	c.Text = fmt.Sprintf("%s the pod's required affinity: it must run %s.",
		w.lacking(g, "satisfy", "satisfies"), strings.Join(parts, ", and "))
	c.Evidence = append(c.Evidence, why.See(w.self,
		".spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", termsText(w.info.Terms.Affinity)))
}

func termsText(list []model.AffinityTerm) string {
	var parts []string
	for i := range list {
		parts = append(parts, fmt.Sprintf("%s per %s", list[i].Selector, list[i].TopologyKey))
	}
	return strings.Join(parts, ", ")
}

// avoided names the pods that the pod's own anti-affinity is about, and where they are.
func (w *writer) avoided(c *why.Cause) (who []string) {
	for i := range w.info.Terms.AntiAffinity {
		t := &w.info.Terms.AntiAffinity[i]
		for n := range w.cluster.Snapshot.All {
			for _, p := range n.Pods {
				if t.Matches(p.Pod, w.cluster.NamespaceLabels(p.Pod.Namespace)) {
					who = append(who, fmt.Sprintf("%s on %s", p.Key(), n.Name()))
				}
			}
		}
	}
	slices.Sort(who)
	c.Evidence = append(c.Evidence, why.See(w.self,
		".spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
		termsText(w.info.Terms.AntiAffinity)))
	return slices.Compact(who)
}

// keepers names the pods whose anti-affinity is about the pod.
func (w *writer) keepers(c *why.Cause) (who []string) {
	for n := range w.cluster.Snapshot.All {
		for _, p := range n.WithAntiAffinity {
			for i := range p.Terms.AntiAffinity {
				if !p.Terms.AntiAffinity[i].Matches(w.pod, w.cluster.NamespaceLabels(w.pod.Namespace)) {
					continue
				}
				who = append(who, fmt.Sprintf("%s on %s", p.Key(), n.Name()))
				if len(c.Evidence) < maxNodes {
					c.Evidence = append(c.Evidence, why.See(why.ObjectOf("", "Pod", p.Pod),
						".spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
						termsText(p.Terms.AntiAffinity)))
				}
			}
		}
	}
	slices.Sort(who)
	return slices.Compact(who)
}

// spread words how the pods of the hard constraints are spread now.
func (w *writer) spread(g *group, c *why.Cause) {
	if strings.Contains(g.status.Message(), "missing required label") {
		c.Text = fmt.Sprintf("%s the label that the pod is spread by (%s).", w.lacking(g, "have", "has"),
			why.And(w.topologyKeys()))
		c.Evidence = append(c.Evidence, why.See(w.self, ".spec.topologySpreadConstraints[*].topologyKey",
			strings.Join(w.topologyKeys(), " ")))
		return
	}
	var parts []string
	for i := range w.info.Spread {
		s := &w.info.Spread[i]
		if !s.Hard {
			continue
		}
		counts := map[string]int{}
		for n := range w.cluster.Snapshot.All {
			if domain, ok := n.Node.Labels[s.TopologyKey]; ok {
				counts[domain] += model.CountMatching(n.Pods, w.pod.Namespace, s.Selector)
			}
		}
		var domains []string
		for _, d := range slices.Sorted(maps.Keys(counts)) {
			domains = append(domains, fmt.Sprintf("%s has %d", d, counts[d]))
		}
		part := fmt.Sprintf("by %s, which may differ by %d: %s", s.TopologyKey, s.MaxSkew, why.And(domains))
		if s.MinDomains > len(counts) {
			part += fmt.Sprintf(" (minDomains %d counts missing ones as empty)", s.MinDomains)
		}
		parts = append(parts, part)
		c.Evidence = append(c.Evidence, why.See(w.self, fmt.Sprintf(".spec.topologySpreadConstraints[%d].maxSkew", i),
			fmt.Sprint(s.MaxSkew)))
	}
	c.Text = fmt.Sprintf("One more pod on %s would spread the pods too unevenly %s.", why.And(w.names(g)),
		strings.Join(parts, ", and "))
}

func (w *writer) topologyKeys() (keys []string) {
	for i := range w.info.Spread {
		if w.info.Spread[i].Hard {
			keys = append(keys, w.info.Spread[i].TopologyKey)
		}
	}
	return keys
}

// volumes words where the pod's volumes can be used.
func (w *writer) volumes(ctx context.Context, g *group, c *why.Cause) {
	if cause, ok := w.claims(ctx, g.status); ok && (g.code == claimMissing || g.code == claimNotBound) {
		*c = cause
		return
	}
	var parts []string
	for _, pc := range w.info.Claims {
		claim, _ := why.Get[corev1.PersistentVolumeClaim](ctx, w.World, w.pod.Namespace, pc.Name)
		if claim == nil {
			continue
		}
		if claim.Spec.VolumeName == "" {
			parts = append(parts, "claim "+pc.Name+" has no volume yet")
			o := why.ObjectOf("", "PersistentVolumeClaim", claim)
			c.Evidence = append(c.Evidence, why.See(o, ".status.phase", string(claim.Status.Phase)))
			if because, err := w.Causes(ctx, o); err == nil && g.code == volumeUnavailable {
				c.Because = append(c.Because, because...)
			}
			continue
		}
		if g.code == volumeInUse {
			parts = append(parts, w.users(pc.Name, c)...)
			continue
		}
		pv, _ := why.Get[corev1.PersistentVolume](ctx, w.World, "", claim.Spec.VolumeName)
		parts = append(parts, fmt.Sprintf("claim %s has volume %s%s", pc.Name, claim.Spec.VolumeName, reach(pv)))
		if pv != nil {
			c.Evidence = append(c.Evidence, why.See(why.ObjectOf("", "PersistentVolume", pv),
				".spec.nodeAffinity.required",
				strings.TrimPrefix(reach(pv), " for nodes with ")))
		}
	}
	what := map[string]string{
		volumeElsewhere:   "reach the pod's volumes",
		volumeUnavailable: "get the pod's volumes",
		volumeLimit:       "attach more volumes of the driver",
		volumeInUse:       "use a volume that another pod has alone",
	}[g.code]
	c.Text = fmt.Sprintf("%s %s (%s)", w.able(g), what, g.status.Message())
	if len(parts) > 0 {
		c.Text += ": " + why.And(parts)
	}
	c.Text += "."
}

// users names the pods that use a claim of the pod, too.
func (w *writer) users(claim string, c *why.Cause) (list []string) {
	for n := range w.cluster.Snapshot.All {
		for _, p := range n.Pods {
			if p.Pod.Namespace != w.pod.Namespace ||
				!slices.ContainsFunc(p.Claims, func(pc model.PodClaim) bool { return pc.Name == claim }) {
				continue
			}
			list = append(list, fmt.Sprintf("claim %s is used by pod %s on %s", claim, p.Key(), n.Name()))
			c.Evidence = append(c.Evidence, why.See(why.ObjectOf("", "Pod", p.Pod),
				".spec.volumes[*].persistentVolumeClaim.claimName", claim))
		}
	}
	return list
}

// reach says on which nodes a volume can be used, "" for all.
func reach(pv *corev1.PersistentVolume) string {
	if pv == nil || pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return ""
	}
	var terms []string
	for _, t := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var list []string
		for _, r := range t.MatchExpressions {
			list = append(list, strings.TrimSpace(r.Key+" "+string(r.Operator)+" "+strings.Join(r.Values, ",")))
		}
		terms = append(terms, strings.Join(list, " and "))
	}
	return " for nodes with " + strings.Join(terms, ", or ")
}
