package main

import (
	"testing"

	"bonsai/cmd/internal/flagtest"
	"bonsai/pkg/referencetest"
)

// TestReferenceCommands: docs/reference has the commands as they are.
func TestReferenceCommands(t *testing.T) {
	t.Parallel()
	root := command()
	referencetest.Check(t, "commands/bonsai.md", "# Commands of bonsai\n\n"+
		"Made from the commands of the program by `go test ./cmd/bonsai -run TestReference -args -update`.\n\n"+
		"## Flags of all commands\n\n"+flagtest.FlagTable(root.PersistentFlags())+flagtest.Commands(root))
}
