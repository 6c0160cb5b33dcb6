package apiregistration

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Local is the condition of what this server serves itself.
func Local() v1.APIServiceCondition {
	return v1.APIServiceCondition{Type: v1.Available, Status: v1.ConditionTrue, Reason: "Local",
		Message: "Local APIServices are always available"}
}

// Condition returns the condition Available; nil if there is none.
func Condition(s *v1.APIService) *v1.APIServiceCondition {
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; c.Type == v1.Available {
			return c
		}
	}
	return nil
}

// IsAvailable reports whether the condition is True.
func IsAvailable(s *v1.APIService) bool {
	c := Condition(s)
	return c != nil && c.Status == v1.ConditionTrue
}

// SetCondition makes c the condition of its type and reports whether that changed anything. The time of its transition
// is now, unless its status is what it was.
func SetCondition(s *v1.APIService, c v1.APIServiceCondition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now)
	for i := range s.Status.Conditions {
		have := &s.Status.Conditions[i]
		if have.Type != c.Type {
			continue
		}
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		changed := have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message
		*have = c
		return changed
	}
	s.Status.Conditions = append(s.Status.Conditions, c)
	return true
}
