package framework

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
var Points = [...]Point{PreEnqueuePoint, QueueSortPoint, PreFilterPoint, FilterPoint, PostFilterPoint, PreScorePoint, ScorePoint, ReservePoint,
	PermitPoint, PreBindPoint, BindPoint, PostBindPoint}

// Has tells whether a plug-in implements the point.
func (p Point) Has(pl Plugin) (ok bool) {
	switch p {
	case PreEnqueuePoint:
		_, ok = pl.(PreEnqueue)
	case QueueSortPoint:
		_, ok = pl.(QueueSort)
	case PreFilterPoint:
		_, ok = pl.(PreFilter)
	case FilterPoint:
		_, ok = pl.(Filter)
	case PostFilterPoint:
		_, ok = pl.(PostFilter)
	case PreScorePoint:
		_, ok = pl.(PreScore)
	case ScorePoint:
		_, ok = pl.(Score)
	case ReservePoint:
		_, ok = pl.(Reserve)
	case PermitPoint:
		_, ok = pl.(Permit)
	case PreBindPoint:
		_, ok = pl.(PreBind)
	case BindPoint:
		_, ok = pl.(Bind)
	case PostBindPoint:
		_, ok = pl.(PostBind)
	}
	return ok
}
