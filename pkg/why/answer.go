package why

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is why an object is in the state in which it is.
type Answer struct {
	Subject Object `json:"subject"`
	// State is what is seen, in one sentence: "Pod shop/web has been Pending for 3 minutes."
	State string `json:"state"`
	// Well says that nothing is wrong. Causes then say why it is so, such as a pod's scores on its node.
	Well bool `json:"well"`
	// Causes are independent of each other, the one that matters most first. An explainer that finds none for an object
	// that is not well says so in State and does not guess.
	Causes []Cause `json:"causes"`
	// Unseen names what could not be read, one sentence each. The answer may be wrong for the lack of it.
	Unseen []string `json:"unseen,omitempty"`
}

// Cause is one link of a chain.
type Cause struct {
	// Code is for programs and tests, and never changes: InsufficientResource. One cause has one code, whatever its
	// subject.
	Code string `json:"code"`
	// Text is one or two plain sentences with the figures that matter, and names objects as users do: pod web,
	// node n1. Text of others (messages of the runtime) is quoted and cut.
	Text string `json:"text"`
	// Evidence is where this can be seen.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Fixes would remove this cause, the smallest first.
	Fixes []Fix `json:"fixes,omitempty"`
	// Because are the causes of this one, the one that matters most first.
	Because []Cause `json:"because,omitempty"`
}

// Evidence is a fact that anybody with the same rights can look up.
type Evidence struct {
	Object Object `json:"object"`
	// Field is a path as JSONPath has it: .status.conditions[?(@.type=="Ready")].message. It is empty for an object
	// that is absent.
	Field string `json:"field,omitempty"`
	// Value is the field's, as text; at most 500 bytes.
	Value string `json:"value,omitempty"`
	// Time is when this became so, nil if nothing says it.
	Time *time.Time `json:"time,omitempty"`
}

// Fix is a change that removes a cause.
type Fix struct {
	// Text says what would change: "Ask for 300m less CPU".
	Text string `json:"text"`
	// Command makes the change, ready for a shell; empty if no single command does.
	Command CommandLine `json:"command,omitempty"`
}

// Object names an object.
type Object struct {
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}
