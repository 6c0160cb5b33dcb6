package memory

import (
	"reflect"
	"testing"
)

// TestNamesOfTypes: the checksum of the state file is of the text of Go types, so their names are part of its format.
func TestNamesOfTypes(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]any{"NUMANodeMap": NUMANodeMap{}, "NUMANodeState": NUMANodeState{},
		"MemoryTable": MemoryTable{}, "Block": Block{}, "ContainerMemoryAssignments": ContainerMemoryAssignments{}} {
		if name := reflect.TypeOf(got).Name(); name != want {
			t.Errorf("%s, want %s", name, want)
		}
	}
}
