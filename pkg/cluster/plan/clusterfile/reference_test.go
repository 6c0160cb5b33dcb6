package clusterfile

import (
	"testing"

	"bonsai/pkg/referencetest"
)

// TestReferenceConfiguration: docs/reference has the configuration file of bonsai as it is.
func TestReferenceConfiguration(t *testing.T) {
	t.Parallel()
	var rows [][]string
	for _, f := range referencetest.Fields(file{}, "yaml") {
		rows = append(rows, []string{referencetest.Code(f.Path), f.Type})
	}
	referencetest.Check(t, "configuration/bonsai.md", "# Configuration file of bonsai\n\n"+
		"The file of `bonsai up --config FILE`, made from its type and its defaults by "+
		"`go test ./pkg/cluster/plan/clusterfile -run TestReference -args -update`. An unknown field is an error.\n\n"+
		referencetest.Table([]string{"field", "type"}, rows)+
		"## Defaults\n\n`bonsai config print-default` prints this file.\n\n```yaml\n"+Default+"```\n")
}
