package main

import (
	"runtime"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

// TestOneProcessor: a command that says that it waits runs on one processor, unless the user says otherwise.
func TestOneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	ctx := cli.WithSerial(t.Context(), oneProcessor)
	for said, want := range map[string]int{"2": 2, "": 1} {
		runtime.GOMAXPROCS(2)
		t.Setenv("GOMAXPROCS", said)
		cli.Serial(ctx)
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("with GOMAXPROCS=%q: %d processors, want %d", said, got, want)
		}
	}
	cli.Serial(t.Context()) // nobody wants to know
}
