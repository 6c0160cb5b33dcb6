package framework

// DefaultNormalize scales scores so that the largest becomes MaxNodeScore; with reverse the largest becomes 0.
func DefaultNormalize(reverse bool, scores []int64) {
	var most int64
	for _, s := range scores {
		most = max(most, s)
	}
	for i, s := range scores {
		if most > 0 {
			s = MaxNodeScore * s / most
		}
		if reverse {
			s = MaxNodeScore - s
		}
		scores[i] = s
	}
}
