package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/why"
)

// room are the causes that end when another pod goes: where to run, or what a quota counts.
var room = []string{"InsufficientResource", "TooManyPods", "HostPortTaken", "PodAntiAffinityConflict",
	"TopologySpreadViolated", "VolumeLimitReached", "VolumeInUse", "QuotaExceeded", "DeviceUnavailable"}

// deadlocked explains a rollout whose new pods wait for room that only old ones would give, while no old one goes
// before a new one is ready: what rounds maxUnavailable down to 0 is the cause. It returns nil for any other rollout.
// old is how many pods of older revisions there are, and causes are those of the new ones.
func deadlocked(self why.Object, d *appsv1.Deployment, want int32, old int, causes []why.Cause) []why.Cause {
	if old == 0 || len(causes) == 0 || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	written := intstr.FromString("25%")
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		written = *r.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&written, int(want), false)
	if err != nil || n > 0 || !slices.ContainsFunc(causes, wantsRoom) {
		return nil
	}
	text := "is 0"
	if written.Type == intstr.String {
		text = fmt.Sprintf("is %s, which of %s is 0", written.String(), why.Count(int(want), "replica"))
	}
	return []why.Cause{{Code: "RolloutDeadlock",
		Text: fmt.Sprintf("The rollout needs room for one pod more, and there is none: maxUnavailable %s, so that no old pod "+
			"goes before a new one is ready, and the new one waits for what the old ones have.", text),
		Evidence: []why.Evidence{why.See(self, ".spec.strategy.rollingUpdate.maxUnavailable", written.String())},
		Fixes: []why.Fix{{Text: "Let one old pod go first.", Command: why.Command(
			`kubectl patch deployment %s%s -p '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`,
			d.Name, self.Flag())}},
		Because: causes}}
}

// wantsRoom reports whether a cause, or one behind it, ends when another pod goes.
func wantsRoom(c why.Cause) bool {
	return slices.Contains(room, c.Code) || slices.ContainsFunc(c.Because, wantsRoom)
}
