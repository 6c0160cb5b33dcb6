package framework

// ShapePoint gives the score, from 0 to 10, where Utilization per cent of something are used.
type ShapePoint struct{ Utilization, Score int64 }

// Shape scores how much of something is used. It has points in the order of their utilization, at least one. Between
// two of them the score changes evenly, before the first and after the last it stays.
type Shape []ShapePoint

// Score is that of a utilization, of MaxNodeScore. Scores are scaled before they are interpolated: a point's
// own ten steps are too coarse to tell nodes apart.
func (s Shape) Score(utilization int64) int64 {
	const scale = MaxNodeScore / 10
	for i, p := range s {
		if utilization > p.Utilization {
			continue
		}
		score := p.Score * scale
		if i == 0 {
			return score
		}
		before := s[i-1]
		from := before.Score * scale
		return from + (score-from)*(utilization-before.Utilization)/(p.Utilization-before.Utilization)
	}
	return s[len(s)-1].Score * scale
}
