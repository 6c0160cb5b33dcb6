package scheduling

import "testing"

// TestSystemClasses: the classes every cluster starts with are valid, and the only ones with their names.
func TestSystemClasses(t *testing.T) {
	t.Parallel()
	for _, c := range systemClasses() {
		if errs := validatePriorityClass(&c); len(errs) > 0 {
			t.Errorf("%s: %v", c.Name, errs)
		}
		c.Value--
		if errs := validatePriorityClass(&c); len(errs) != 1 {
			t.Errorf("%s with another value: %v", c.Name, errs)
		}
	}
}
