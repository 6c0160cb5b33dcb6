// Package psi reads the kernel's pressure stall information: how long processes have waited for a resource that was
// scarce (https://docs.kernel.org/accounting/psi.html).
package psi

import (
	"strconv"
	"strings"
)

// Pressure is how long processes have waited: Some while at least one did, Full while all did.
type Pressure struct{ Some, Full Stall }

// Stall is a time of waiting.
type Stall struct {
	// Avg10, Avg60 and Avg300 are its parts of the last seconds, in percent.
	Avg10, Avg60, Avg300 float64
	// Total is in microseconds.
	Total uint64
}

// Parse reads the text of a kernel's file, such as cpu.pressure; nil if it has no pressure.
func Parse(text string) *Pressure {
	var p Pressure
	known := false
	for line := range strings.Lines(text) { // some avg10=0.12 avg60=0.05 avg300=0.01 total=12345
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		to := &p.Some
		switch f[0] {
		case "some":
			known = true
		case "full":
			to = &p.Full
		default:
			continue
		}
		for _, field := range f[1:] {
			name, value, _ := strings.Cut(field, "=")
			average, _ := strconv.ParseFloat(value, 64) // 0 is what an unreadable one counts for
			switch name {
			case "avg10":
				to.Avg10 = average
			case "avg60":
				to.Avg60 = average
			case "avg300":
				to.Avg300 = average
			case "total":
				to.Total, _ = strconv.ParseUint(value, 10, 64)
			}
		}
	}
	if !known {
		return nil
	}
	return &p
}
