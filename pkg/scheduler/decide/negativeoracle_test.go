package decide

import (
	"testing"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/dynamicresources"
	"bonsai/pkg/scheduler/plugins/imagelocality"
	"bonsai/pkg/scheduler/plugins/nodeaffinity"
	"bonsai/pkg/scheduler/plugins/nodedeclaredfeatures"
	"bonsai/pkg/scheduler/plugins/nodename"
	"bonsai/pkg/scheduler/plugins/nodeports"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/plugins/nodeunschedulable"
	"bonsai/pkg/scheduler/plugins/nodevolumelimits"
	"bonsai/pkg/scheduler/plugins/tainttoleration"
	"bonsai/pkg/scheduler/plugins/volumebinding"
	"bonsai/pkg/scheduler/plugins/volumerestrictions"
	"bonsai/pkg/scheduler/plugins/volumezone"
	"bonsai/pkg/scheduler/profile"
)

// Plug-ins that do not say what they read.
type (
	forgetfulTaints        struct{ tainttoleration.Plugin }
	forgetfulUnschedulable struct{ nodeunschedulable.Plugin }
	forgetfulFit           struct{ noderesources.Fit }
	forgetfulBalanced      struct{ noderesources.Balanced }
	forgetfulAffinity      struct{ nodeaffinity.Plugin }
	forgetfulPorts         struct{ nodeports.Plugin }
	forgetfulName          struct{ nodename.Plugin }
	forgetfulImages        struct{ imagelocality.Plugin }
	forgetfulBinding       struct{ *volumebinding.Plugin }
	forgetfulZones         struct{ volumezone.Plugin }
	forgetfulLimits        struct{ nodevolumelimits.Plugin }
	forgetfulDevices       struct{ *dynamicresources.Plugin }
	forgetfulFeatures      struct{ nodedeclaredfeatures.Plugin }
	carefreeRestrictions   struct{ volumerestrictions.Plugin }
)

func (forgetfulTaints) Reads(*model.PodInfo, *model.Key)        {}
func (forgetfulUnschedulable) Reads(*model.PodInfo, *model.Key) {}
func (forgetfulFit) Reads(*model.PodInfo, *model.Key)           {}
func (forgetfulBalanced) Reads(*model.PodInfo, *model.Key)      {}
func (forgetfulAffinity) Reads(*model.PodInfo, *model.Key)      {}
func (forgetfulPorts) Reads(*model.PodInfo, *model.Key)         {}
func (forgetfulName) Reads(*model.PodInfo, *model.Key)          {}
func (forgetfulImages) Reads(*model.PodInfo, *model.Key)        {}
func (forgetfulBinding) Reads(*model.PodInfo, *model.Key)       {}
func (forgetfulZones) Reads(*model.PodInfo, *model.Key)         {}
func (forgetfulLimits) Reads(*model.PodInfo, *model.Key)        {}
func (forgetfulDevices) Reads(*model.PodInfo, *model.Key)       {}
func (forgetfulFeatures) Reads(*model.PodInfo, *model.Key)      {}
func (carefreeRestrictions) Concerns(*model.PodInfo) bool       { return false }

// census is a plug-in that depends on all nodes, though it says that it depends on one.
type census struct{}

func (census) Name() string                     { return "Census" }
func (census) Reads(*model.PodInfo, *model.Key) {}
func (census) ScoreEpoch(*model.Snapshot) int64 { return 0 }
func (census) Filter(*framework.CycleState, *model.PodInfo, *model.NodeInfo) *framework.Status {
	return nil
}

func (census) PreScore(state *framework.CycleState, _ *model.PodInfo, s *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	state.Write("Census", s.Count)
	return nil
}

func (census) Score(state *framework.CycleState, _ *model.PodInfo, n *model.NodeInfo) int64 {
	count, _ := state.Read("Census").(int)
	return int64(100 * n.Slot / (count + 1) % 100)
}

// tiers is a slow plug-in: it keeps some pods of a tier off some nodes, by what it counts on all nodes.
type tiers struct{ concerns func(*model.PodInfo) bool }

func (tiers) Name() string                       { return "Tiers" }
func (p tiers) Concerns(pod *model.PodInfo) bool { return p.concerns(pod) }

func (tiers) PreFilter(state *framework.CycleState, _ *model.PodInfo, s *model.Snapshot) (map[string]bool,
	*framework.Status) {
	state.Write("Tiers", s.Count)
	return nil, nil
}

func (tiers) Filter(state *framework.CycleState, pod *model.PodInfo, n *model.NodeInfo) *framework.Status {
	count, _ := state.Read("Tiers").(int)
	if pod.Pod.Labels["tier"] == "1" && (len(n.Pods)+count)%2 == 0 {
		return framework.NewStatus(framework.Unschedulable, "not for this tier")
	}
	return nil
}

func inTier(pod *model.PodInfo) bool { return pod.Pod.Labels["tier"] == "1" }

// these are plug-ins that need nothing of the history.
func these(plugins ...framework.Plugin) func(*history) []framework.Plugin {
	return func(*history) []framework.Plugin { return plugins }
}

// instead replaces the plug-ins of the same names, and adds the others.
func instead(others ...framework.Plugin) func([]profile.Enabled) []profile.Enabled {
	return func(list []profile.Enabled) []profile.Enabled {
		for _, other := range others {
			known := false
			for i := range list {
				if list[i].Plugin.Name() == other.Name() {
					list[i].Plugin, known = other, true
				}
			}
			if !known {
				list = append([]profile.Enabled{{Plugin: other, Weight: 5}}, list...)
			}
		}
		return list
	}
}

// falseDeclarations returns plug-ins with false declarations, by what they read in spite of them.
func falseDeclarations() map[string]func(h *history) []framework.Plugin {
	return map[string]func(h *history) []framework.Plugin{
		"devices": func(h *history) []framework.Plugin {
			return []framework.Plugin{forgetfulDevices{&dynamicresources.Plugin{Devices: h.gear.known, Node: h.object}}}
		},
		"claims": func(h *history) []framework.Plugin {
			return []framework.Plugin{forgetfulBinding{&volumebinding.Plugin{Volumes: h.storage.known, Node: h.object}}}
		},
		"zones of volumes": func(h *history) []framework.Plugin {
			return []framework.Plugin{forgetfulZones{volumezone.Plugin{Volumes: h.storage.known}}}
		},
		"limits of volumes": func(h *history) []framework.Plugin {
			return []framework.Plugin{forgetfulLimits{nodevolumelimits.Plugin{Volumes: h.storage.known}}}
		},
		"claims for one pod": func(h *history) []framework.Plugin {
			return []framework.Plugin{carefreeRestrictions{volumerestrictions.Plugin{Volumes: h.storage.known}}}
		},
		"tolerations":     these(forgetfulTaints{}, forgetfulUnschedulable{}),
		"requests":        these(forgetfulFit{}, forgetfulBalanced{}),
		"node affinity":   these(forgetfulAffinity{}),
		"host ports":      these(forgetfulPorts{}),
		"features":        these(forgetfulFeatures{nodedeclaredfeatures.New()}),
		"node name":       these(forgetfulName{}),
		"images":          these(forgetfulImages{}),
		"the other nodes": these(census{}),
		"whom it concerns": these(tiers{func(pod *model.PodInfo) bool {
			return inTier(pod) && pod.Pod.Labels["app"] == "web"
		}}),
	}
}

// TestEveryDeclarationHasAFalseVersion: falseDeclarations has a version of each plug-in that declares that its results
// depend on the pod.
func TestEveryDeclarationHasAFalseVersion(t *testing.T) {
	t.Parallel()
	h := newHistory(0)
	versions := map[string]bool{}
	for _, plugins := range falseDeclarations() {
		for _, pl := range plugins(h) {
			versions[pl.Name()] = true
		}
	}
	h.profile(t, func(list []profile.Enabled) []profile.Enabled {
		for _, e := range list {
			if h.dependsOnPod(e.Plugin) && !versions[e.Plugin.Name()] {
				t.Errorf("%s declares what its results depend on: add a version with a false declaration to falseDeclarations", e.Plugin.Name())
			}
		}
		return list
	})
}

// dependsOnPod reports whether a plug-in declares different results for different pods, except through a tracker.
func (h *history) dependsOnPod(pl framework.Plugin) bool {
	local, isLocal := pl.(framework.NodeLocal)
	_, isTracking := pl.(framework.Tracking)
	selective, isSelective := pl.(framework.Selective)
	keys := map[string]bool{}
	for range 300 {
		pod := model.NewPodInfo(h.pod())
		if isLocal {
			keys[model.KeyOf(local.Reads)(pod)] = true
		}
		if isSelective && !isTracking && !selective.Concerns(pod) {
			return true
		}
	}
	return len(keys) > 1
}

// TestTheOracleFindsFalseDeclarations: a plug-in that does not say what it reads, that depends on more than it says, or
// that concerns more pods than it says, gives another answer than the plain way sooner or later.
func TestTheOracleFindsFalseDeclarations(t *testing.T) {
	t.Parallel()
	for name, plugins := range falseDeclarations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Most are caught within a few histories. Which one finds it differs from run to run, so the bound is far
			// off.
			for seed := range uint64(400) {
				h := newHistory(seed)
				if _, err := h.run(t.Context(), h.profile(t, instead(plugins(h)...)), 400); err != nil {
					return
				}
			}
			t.Error("nobody notices")
		})
	}
}

// TestASlowPluginSlowsOnlyItsOwnPods: pods that it does not concern are decided as if it were not there.
func TestASlowPluginSlowsOnlyItsOwnPods(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		h := newHistory(seed)
		n, err := h.run(t.Context(), h.profile(t, instead(tiers{inTier})), 400)
		if err != nil {
			t.Fatal(err)
		}
		if n.slow != n.inTier || n.slow == 0 {
			t.Errorf("%d pods were decided plainly, %d are of the tier", n.slow, n.inTier)
		}
	}
}
