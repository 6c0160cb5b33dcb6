package rows

import (
	"testing"
	"time"
)

// A bookmark of a watch that shows tables is the row of an empty object: every kind has one, with as many cells as
// columns.
func TestCellsOfAnEmptyObject(t *testing.T) {
	t.Parallel()
	all := All()
	for i := range all {
		row := &all[i]
		if row.Cells == nil {
			continue
		}
		if cells := row.Cells(row.New(), time.Unix(0, 0)); len(cells) != len(row.Columns) {
			t.Errorf("%s: %d cells for %d columns", row.GroupResource(), len(cells), len(row.Columns))
		}
	}
}
