package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForwarding: the setting is what it was before the first cluster when the last has gone, whoever ends twice or in
// which order, and stays where it was on before or something else has begun to forward.
func TestForwarding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, rules, steps, want string
		recorded                   bool
	}{
		"one":                    {"0", "-P FORWARD ACCEPT", "+a -a", "0", false},
		"two":                    {"0", "", "+a +b -a", "1", true},
		"both gone":              {"0", "", "+a +b -a -b", "0", false},
		"the first again":        {"0", "", "+a +a +b -b -a", "0", false},
		"gone twice":             {"0", "", "+a +b -a -a", "1", true},
		"a stranger":             {"0", "", "+a -x", "1", true},
		"never begun":            {"0", "", "-a", "0", false},
		"on before":              {"1", "", "+a -a", "1", false},
		"others forward by then": {"0", "-P FORWARD ACCEPT", "+a dockerd -a", "1", false},
		"a second life":          {"0", "", "+a -a +b -b", "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := Forwarding{setting: filepath.Join(dir, "ip_forward"), record: filepath.Join(dir, "record"),
				lock: filepath.Join(dir, "lock")}
			if err := os.WriteFile(f.setting, []byte(c.before+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			rules := c.rules
			for step := range strings.FieldsSeq(c.steps) {
				var err error
				switch step[0] {
				case '+':
					err = f.Begin(step[1:], rules)
				case '-':
					err = f.End(step[1:], rules)
				default:
					rules = "-P FORWARD DROP"
				}
				if err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
			if now, err := os.ReadFile(f.setting); err != nil || strings.TrimSpace(string(now)) != c.want {
				t.Errorf("the setting is %s, not %s: %v", now, c.want, err)
			}
			if _, err := os.Stat(f.record); (err == nil) != c.recorded {
				t.Errorf("the record: %v", err)
			}
		})
	}
}
