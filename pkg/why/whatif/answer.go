package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bonsai/pkg/why"
)

// Answer writes the result in sentences, what is wrong first.
func (r Result) Answer() why.Answer {
	var nowhere, refused int
	for _, w := range r.Waiting {
		switch {
		case w.Refused:
			refused++
		case !w.Already:
			nowhere++
		}
	}
	a := why.Answer{Unseen: r.Unseen, Causes: []why.Cause{}, State: fmt.Sprintf(
		"If you %s, %s would be placed, and %s would find no node.", r.Change, why.Count(len(r.Placed), "pod"),
		why.Count(nowhere, "pod"))}
	if refused > 0 {
		a.State += fmt.Sprintf(" %s would not even be made.", why.Count(refused, "pod"))
	}
	a.Causes = slices.Concat(a.Causes, r.budgets(), r.refused(), r.waiting(false), r.lost(), r.evicted())
	a.Well = len(a.Causes) == 0
	a.Causes = slices.Concat(a.Causes, r.placed(), r.ended(), r.waiting(true))
	return a
}

func (r Result) budgets() (list []why.Cause) {
	for _, b := range r.Budgets {
		code, verb := "BudgetForbids", "would forbid a part of it"
		if b.Effect == Breaks {
			code, verb = "BudgetBreaks", "would be broken"
		}
		list = append(list, why.Cause{Code: code, Text: fmt.Sprintf("%s %s. %s", b.Budget, verb, b.Text),
			Evidence: []why.Evidence{why.See(b.Budget, ".status.disruptionsAllowed", fmt.Sprint(b.Allowed))}})
	}
	return list
}

// waiting groups pods that find no node by their owner and the reason.
func (r Result) waiting(already bool) []why.Cause {
	type key struct{ owner, message string }
	pods, first := map[key][]string{}, map[key]Waiting{}
	for _, w := range r.Waiting {
		if w.Already == already {
			k := key{w.Owner, w.Message}
			if pods[k] == nil {
				first[k] = w
			}
			pods[k] = append(pods[k], w.Pod.Name)
		}
	}
	code, text := "WouldWait", "%s%s would find no node: %s."
	if already {
		code, text = "WaitsAlready", "%s%s would still find no node: %s."
	}
	var list []why.Cause
	for _, k := range slices.SortedFunc(maps.Keys(pods), func(a, b key) int {
		return cmp.Or(cmp.Compare(len(pods[b]), len(pods[a])), strings.Compare(a.owner, b.owner),
			strings.Compare(a.message, b.message))
	}) {
		of := " (" + why.And(pods[k]) + ")"
		if k.owner != "" {
			of = " of " + k.owner
		}
		number, said := why.Count(len(pods[k]), "pod"), why.Quote(k.message)
		cause := why.Cause{Code: code, Text: fmt.Sprintf(text, number, of, said)}
		if first[k].Refused {
			cause = r.notMade(number+of, k.message)
		}
		if asks := first[k].Asks; asks != "" {
			cause.Text += fmt.Sprintf(" Each asks for %s.", asks)
		}
		for _, hold := range first[k].Holds {
			cause.Because = append(cause.Because, why.Cause{Code: "PodHeld", Text: hold})
		}
		for _, refusal := range first[k].Refusals {
			cause.Because = append(cause.Because, why.Cause{Code: "NodeRefuses",
				Text: fmt.Sprintf("Node %s: %s.", refusal.Node, refusal.Reason)})
		}
		list = append(list, cause)
	}
	return list
}

// notMade explains that the API server would refuse something.
func (r Result) notMade(what, message string) why.Cause {
	cause := r.refusals[message]
	cause.Text = fmt.Sprintf("%s could not be made: %s.", what, why.Quote(message))
	cause.Evidence = nil // what would be has not been seen
	return cause
}

func (r Result) refused() (list []why.Cause) {
	for _, o := range r.Refused {
		list = append(list, r.notMade(o.Object.String(), o.Message))
	}
	return list
}

func (r Result) lost() []why.Cause {
	var names []string
	for _, e := range r.Ended {
		if e.Lost {
			names = append(names, e.Pod.Namespace+"/"+e.Pod.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []why.Cause{{Code: "WouldBeLost",
		Text: fmt.Sprintf("%s would end and not be made again, since no controller has made it: %s.",
			why.Count(len(names), "pod"), why.And(names))}}
}

func (r Result) evicted() (list []why.Cause) {
	for _, p := range r.Placed {
		if len(p.Evicted) == 0 {
			continue
		}
		var names []string
		for _, e := range p.Evicted {
			names = append(names, e.Namespace+"/"+e.Name)
		}
		list = append(list, why.Cause{Code: "WouldEvict", Text: fmt.Sprintf(
			"For pod %s, which has a higher priority, the scheduler would evict %s from node %s.", p.Pod.Name,
			why.And(names), p.Node)})
	}
	return list
}

// placed groups pods by node and owner.
func (r Result) placed() (list []why.Cause) {
	nodes := map[string]map[string]int{}
	for _, p := range r.Placed {
		if nodes[p.Node] == nil {
			nodes[p.Node] = map[string]int{}
		}
		nodes[p.Node][cmp.Or(p.Owner, "pod/"+p.Pod.Name)]++
	}
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		var parts []string
		total := 0
		for _, o := range slices.Sorted(maps.Keys(nodes[n])) {
			total += nodes[n][o]
			parts = append(parts, fmt.Sprintf("%d of %s", nodes[n][o], o))
		}
		list = append(list, why.Cause{Code: "WouldBePlaced", Text: fmt.Sprintf("%s would be placed on node %s: %s.",
			why.Count(total, "pod"), n, why.And(parts))})
	}
	return list
}

func (r Result) ended() []why.Cause {
	nodes := map[string]int{}
	for _, e := range r.Ended {
		if !e.Lost {
			nodes[e.Node]++
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	var parts []string
	total := 0
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		total += nodes[n]
		if n == "" {
			parts = append(parts, fmt.Sprintf("%d without a node", nodes[n]))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d on node %s", nodes[n], n))
	}
	return []why.Cause{{Code: "WouldEnd", Text: fmt.Sprintf("%s would end: %s.", why.Count(total, "pod"),
		why.And(parts))}}
}
