package why

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Answer is what `kubectl why -o json` prints.
type Answer struct {
	Subject any      `json:"subject"`
	State   string   `json:"state"`
	Well    bool     `json:"well"`
	Causes  []Cause  `json:"causes"`
	Unseen  []string `json:"unseen"`
}

// Cause is one reason, with what shows it, what helps against it, and the reasons behind it.
type Cause struct {
	Code     string     `json:"code"`
	Text     string     `json:"text"`
	Evidence []Evidence `json:"evidence"`
	Fixes    []Fix      `json:"fixes"`
	Because  []Cause    `json:"because"`
}

// Evidence is a value of an object's field at a time. Only people read it here, so that its values may have any form.
type Evidence struct {
	Object any `json:"object"`
	Field  any `json:"field"`
	Value  any `json:"value"`
	Time   any `json:"time"`
}

// Fix is a change that helps, and the command for it.
type Fix struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

// Read reads an answer.
func Read(printed []byte) (Answer, error) {
	var a Answer
	err := json.Unmarshal(printed, &a)
	return a, err
}

// walk calls visit for a cause and all causes behind it.
func (c Cause) walk(visit func(Cause)) {
	visit(c)
	for _, b := range c.Because {
		b.walk(visit)
	}
}

// texts returns the texts of a cause and of the chain below it, a line each.
func (c Cause) texts() string {
	var lines []string
	c.walk(func(c Cause) { lines = append(lines, c.Text) })
	return strings.Join(lines, "\n")
}

// offers returns the fixes of a cause and of the chain below it, a line each.
func (c Cause) offers() string {
	var lines []string
	c.walk(func(c Cause) {
		for _, f := range c.Fixes {
			lines = append(lines, f.Text+"\n"+f.Command)
		}
	})
	return strings.Join(lines, "\n")
}

// anyNamespace stands for the situation's namespace when an answer is judged: answers quote the namespace, which has
// the situation's name in it, and an expression that is in the name would match whatever the answer is. It has no
// letter and no digit.
const anyNamespace = "§"

// Judge returns what is wrong with an answer to a question in a namespace, nothing if it is the true one. expand
// replaces the variables in expressions by their quoted values.
func Judge(s *Situation, a Answer, namespace string, expand func(string) string) (faults []string) {
	hide := strings.NewReplacer(namespace, anyNamespace).Replace
	matches := func(expression, text string) bool {
		expression = strings.ReplaceAll(expression, "$NS", anyNamespace)
		return regexp.MustCompile(expand(expression)).MatchString(hide(text))
	}
	var first Cause
	if len(a.Causes) > 0 {
		first = a.Causes[0]
	}
	all := []string{a.State}
	for _, c := range a.Causes {
		all = append(all, c.texts())
	}
	switch {
	case s.Well && !a.Well:
		faults = append(faults, "nothing is wrong, but the answer does not say that it is well")
	case !s.Well && len(s.First) > 0 && a.Well:
		faults = append(faults, "something is wrong, but the answer says that it is well")
	}
	if len(s.First) > 0 && len(a.Causes) == 0 {
		return append(faults, "the answer has no cause")
	}
	for _, expression := range s.First {
		if !matches(expression, first.texts()) {
			faults = append(faults, fmt.Sprintf("the first cause does not match %q", expression))
		}
	}
	for _, expression := range s.Never {
		if matches(expression, first.texts()) {
			faults = append(faults, fmt.Sprintf("the first cause matches %q, which is not true", expression))
		}
	}
	for _, expression := range s.Says {
		if !matches(expression, strings.Join(all, "\n")) {
			faults = append(faults, fmt.Sprintf("the answer does not match %q", expression))
		}
	}
	if s.Fix != "" && !matches(s.Fix, first.offers()) {
		faults = append(faults, fmt.Sprintf("no fix of the first cause matches %q", s.Fix))
	}
	return faults
}
