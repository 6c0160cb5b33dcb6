package printers

import (
	"io"
	"text/tabwriter"
)

// NewTabWriter aligns columns as kubectl does: at least 6 wide, three spaces apart. Flush it.
func NewTabWriter(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
}
