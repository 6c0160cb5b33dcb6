package why

import (
	"encoding/json"
	"fmt"
	"strings"
)

// foreseen is the part of what `kubectl why --what-if -o json` prints by which its answer is judged.
type foreseen struct {
	Change  string `json:"change"`
	Placed  []any  `json:"placed"`
	Waiting []struct {
		Pod     named  `json:"pod"`
		Message string `json:"message"`
		// Already is set for a pod that waits without the change, too.
		Already bool `json:"already"`
	} `json:"waiting"`
	Ended []struct {
		Pod  named `json:"pod"`
		Lost bool  `json:"lost"`
	} `json:"ended"`
	Budgets []struct {
		Budget named  `json:"budget"`
		Effect string `json:"effect"`
		Text   string `json:"text"`
	} `json:"budgets"`
}

// named is an object's name.
type named struct {
	Name string `json:"name"`
}

// Read reads an answer. What is foreseen of a change becomes one, too: each budget, each pod that would begin to wait
// and each pod that nobody would make again is a cause.
func Read(printed []byte) (Answer, error) {
	var (
		a Answer
		f foreseen
	)
	if err := json.Unmarshal(printed, &f); err != nil {
		return a, err
	}
	if f.Change == "" {
		err := json.Unmarshal(printed, &a)
		return a, err
	}
	for _, b := range f.Budgets {
		a.Causes = append(a.Causes, Cause{Text: strings.Join([]string{b.Budget.Name, b.Effect, b.Text}, " ")})
	}
	waiting := 0
	for _, w := range f.Waiting {
		if !w.Already {
			waiting++
			a.Causes = append(a.Causes, Cause{Text: w.Pod.Name + ": " + w.Message})
		}
	}
	for _, e := range f.Ended {
		if e.Lost {
			a.Causes = append(a.Causes, Cause{Text: e.Pod.Name + " would be lost"})
		}
	}
	a.State = fmt.Sprintf("%s: %d placed, %d waiting", f.Change, len(f.Placed), waiting)
	a.Well = len(a.Causes) == 0
	return a, nil
}
