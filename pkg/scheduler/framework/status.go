package framework

import "strings"

// Code is the result of a plug-in.
type Code int

// The codes of a Status.
const (
	// Success: the pod may go on. A nil *Status means the same.
	Success Code = iota
	// Error: something broke that is not the pod's fault; the pod is tried again.
	Error
	// Unschedulable: not possible as things are; preempting other pods could help.
	Unschedulable
	// UnschedulableAndUnresolvable: not possible, and preempting would not help either.
	UnschedulableAndUnresolvable
	// Wait: Permit holds the pod back until it is allowed, refused, or its time is over.
	Wait
	// Skip: the plug-in has nothing to do for this pod; its coupled extension points are not called.
	Skip
)

// String is the code's name, as metrics show it.
func (c Code) String() string {
	return [...]string{"Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip"}[c]
}

// Status is a plug-in's answer with its reasons as data: one reason is one short phrase about one node or pod.
type Status struct {
	Code    Code
	Reasons []string
	// Detail says more than the reasons that are counted and shown to everyone, "" if there is nothing more to say.
	Detail string
	// Plugin is the name of the plug-in that answered; the Profile fills it in.
	Plugin string
	// Err is what broke, with Code Error.
	Err error
}

// NewStatus returns a status of the code with its reasons.
func NewStatus(code Code, reasons ...string) *Status { return &Status{Code: code, Reasons: reasons} }

// AsStatus wraps err; nil gives nil, which is success.
func AsStatus(err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{Code: Error, Reasons: []string{err.Error()}, Err: err}
}

// IsSuccess is true for nil and for Success.
func (s *Status) IsSuccess() bool { return s == nil || s.Code == Success }

// IsSkip is true for Skip.
func (s *Status) IsSkip() bool { return s != nil && s.Code == Skip }

// IsRejected is true when the pod does not fit, as opposed to an error.
func (s *Status) IsRejected() bool {
	return s != nil && (s.Code == Unschedulable || s.Code == UnschedulableAndUnresolvable)
}

// Message joins the reasons.
func (s *Status) Message() string {
	if s == nil {
		return ""
	}
	return strings.Join(s.Reasons, ", ")
}

// AsError returns nil for success, else an error that says what the status says.
func (s *Status) AsError() error {
	if s.IsSuccess() {
		return nil
	}
	return &statusError{Status: s}
}

// statusError is a Status as an error.
type statusError struct{ Status *Status }

func (e *statusError) Error() string {
	if e.Status.Plugin == "" {
		return e.Status.Message()
	}
	return "plugin " + e.Status.Plugin + ": " + e.Status.Message()
}

func (e *statusError) Unwrap() error { return e.Status.Err }

// WithPlugin returns the status with the plug-in that gave it. A status that already names one, such as a shared value,
// is returned as it is; s itself never changes.
func (s *Status) WithPlugin(name string) *Status {
	if s != nil && s.Plugin == "" {
		c := *s
		c.Plugin = name
		return &c
	}
	return s
}
