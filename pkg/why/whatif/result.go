package whatif

import (
	"bonsai/pkg/why"
)

// Result is what would follow from a change.
type Result struct {
	Change string `json:"change"`
	// Placed are the pods that would get a node, in the order in which the scheduler takes them.
	Placed []Placed `json:"placed"`
	// Waiting are the pods that would find none.
	Waiting []Waiting `json:"waiting"`
	// Refused are the objects of a file that the API server would refuse.
	Refused []Refused `json:"refused,omitempty"`
	// Ended are the pods that would end, also those that are made again and placed.
	Ended []Ended `json:"ended"`
	// Budgets are the disruption budgets that would forbid a part of the change, or break.
	Budgets []Budget `json:"budgets"`
	// Unseen says what could not be read or was left out, one sentence each.
	Unseen []string `json:"unseen,omitempty"`

	// refusals explain the messages of refusals.
	refusals map[string]why.Cause
}

// Refused is an object that would not be made.
type Refused struct {
	Object  why.Object `json:"object"`
	Message string     `json:"message"`
}

// Placed is a pod that would get a node.
type Placed struct {
	Pod why.Object `json:"pod"`
	// Node is the node that was assumed for what follows; Nodes are all that the scheduler rates equally best, among
	// which it chooses by chance.
	Node  string   `json:"node"`
	Nodes []string `json:"nodes"`
	// Owner is the workload that makes the pod; New says that the pod does not exist yet.
	Owner string `json:"owner,omitempty"`
	New   bool   `json:"new"`
	// Evicted are pods of lower priority that would make room.
	Evicted []why.Object `json:"evicted,omitempty"`
}

// Waiting is a pod that would find no node, or would not be made.
type Waiting struct {
	Pod     why.Object `json:"pod"`
	Owner   string     `json:"owner,omitempty"`
	New     bool       `json:"new"`
	Message string     `json:"message"`
	// Asks is what the pod requests: "cpu=2,memory=1Gi"; empty if it requests nothing.
	Asks string `json:"asks,omitempty"`
	// Refusals are the reasons of nodes that could take other pods, at most maxRefusals.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Refused says that the pod would not even be made; Message is why.
	Refused bool `json:"refused,omitempty"`
	// Holds say which volumes and labels leave the pod no other node, one sentence each.
	Holds []string `json:"holds,omitempty"`
	// Already says that the pod waits without the change, too.
	Already bool `json:"already"`
}

// maxRefusals bounds the nodes whose reasons a waiting pod has.
const maxRefusals = 20

// Refusal is why one node does not take a pod.
type Refusal struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Ended is a pod that would end.
type Ended struct {
	Pod  why.Object `json:"pod"`
	Node string     `json:"node,omitempty"`
	// Lost says that nobody makes it again.
	Lost bool `json:"lost"`
}

// Effects of a change on a budget.
const (
	Forbids = "forbids" // evictions are refused
	Breaks  = "breaks"  // fewer pods than it wants are left, and nobody asks it
)

// Budget is a disruption budget that would matter.
type Budget struct {
	Budget why.Object   `json:"budget"`
	Effect string       `json:"effect"`
	Pods   []why.Object `json:"pods"`
	// Allowed is how many disruptions it allows now.
	Allowed int32  `json:"allowed"`
	Text    string `json:"text"`
}
