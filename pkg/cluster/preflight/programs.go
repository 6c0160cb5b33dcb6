package preflight

import (
	"fmt"
	"path/filepath"
)

// programs has one finding for all programs that are there, and one for each that is not.
func programs(m Machine, _ Needs) []Finding {
	var found []Finding
	for _, p := range m.Programs {
		if p.Found {
			continue
		}
		text := fmt.Sprintf("the program %s is missing", p.Name)
		if p.Name == CNIPlugins {
			text = fmt.Sprintf("%s are missing from %s", p.Name, filepath.Dir(p.Path))
		}
		found = append(found, Finding{Missing, "programs", text, m.Distribution.install(p.Name)})
	}
	if len(found) == 0 {
		return []Finding{{Level: OK, Subject: "programs", Text: fmt.Sprintf("all %d are there", len(m.Programs))}}
	}
	return found
}
