package steps

import (
	"fmt"
	"io"
	"time"
)

// Printer prints one line a step, with the time of the step and the time since the command began.
type Printer struct {
	out   io.Writer
	began time.Time
}

// NewPrinter returns a Printer for a command that begins now.
func NewPrinter(out io.Writer) Printer { return Printer{out: out, began: time.Now()} }

// Run runs a step and prints its line. It returns the step's error as it is.
func (p Printer) Run(name string, run func() error) error {
	began := time.Now()
	err := run()
	mark := "ok"
	if err != nil {
		mark = "FAILED"
	}
	fmt.Fprintf(p.out, "  %-46s %-6s %6.2f s  (%5.2f s)\n", name, mark, time.Since(began).Seconds(),
		time.Since(p.began).Seconds())
	return err
}

// Warn prints what does not keep the steps from being taken, a line each.
func (p Printer) Warn(texts ...string) {
	for _, text := range texts {
		fmt.Fprintf(p.out, "  warning: %s\n", text)
	}
}

// Note prints what the command waits for before its next step.
func (p Printer) Note(text string) { fmt.Fprintf(p.out, "  %s\n", text) }
