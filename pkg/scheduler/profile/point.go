package profile

import "bonsai/pkg/scheduler/framework"

// Point is an extension point, by its name in a configuration.
type Point string

// The extension points.
const (
	PreEnqueuePoint Point = "preEnqueue"
	QueueSortPoint  Point = "queueSort"
	PreFilterPoint  Point = "preFilter"
	FilterPoint     Point = "filter"
	PostFilterPoint Point = "postFilter"
	PreScorePoint   Point = "preScore"
	ScorePoint      Point = "score"
	ReservePoint    Point = "reserve"
	PermitPoint     Point = "permit"
	PreBindPoint    Point = "preBind"
	BindPoint       Point = "bind"
	PostBindPoint   Point = "postBind"
)

// Points are all of them, in the order of the calls.
var Points = [...]Point{
	PreEnqueuePoint, QueueSortPoint, PreFilterPoint, FilterPoint, PostFilterPoint, PreScorePoint, ScorePoint,
	ReservePoint, PermitPoint, PreBindPoint, BindPoint, PostBindPoint,
}

// Has reports whether a plug-in implements the point.
//
// The configuration uses it to refuse a plug-in that is enabled at a point which it does not implement.
func (p Point) Has(pl framework.Plugin) (ok bool) {
	switch p {
	case PreEnqueuePoint:
		_, ok = pl.(framework.PreEnqueue)
	case QueueSortPoint:
		_, ok = pl.(framework.QueueSort)
	case PreFilterPoint:
		_, ok = pl.(framework.PreFilter)
	case FilterPoint:
		_, ok = pl.(framework.Filter)
	case PostFilterPoint:
		_, ok = pl.(framework.PostFilter)
	case PreScorePoint:
		_, ok = pl.(framework.PreScore)
	case ScorePoint:
		_, ok = pl.(framework.Score)
	case ReservePoint:
		_, ok = pl.(framework.Reserve)
	case PermitPoint:
		_, ok = pl.(framework.Permit)
	case PreBindPoint:
		_, ok = pl.(framework.PreBind)
	case BindPoint:
		_, ok = pl.(framework.Bind)
	case PostBindPoint:
		_, ok = pl.(framework.PostBind)
	}
	return ok
}
