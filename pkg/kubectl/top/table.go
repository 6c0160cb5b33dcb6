package top

import (
	"io"
	"strconv"

	"bonsai/pkg/kubectl/printers"
)

// table aligns cells as upstream's does, which has one column more than it shows.
type table struct{ *printers.Aligner }

func newTable(w io.Writer) table { return table{printers.NewAligner(w)} }

func (t table) row(cells ...string) { t.Row(append(cells, "")...) }

func format(n int64, unit string) string { return strconv.FormatInt(n, 10) + unit }
