package why

import (
	"context"
	"time"
)

// Explainer answers why an object of its kind is as it is. The object need not exist.
type Explainer interface {
	Explain(ctx context.Context, c *Case, o Object) (Answer, error)
}

// ExplainerFunc is a function as Explainer.
type ExplainerFunc func(ctx context.Context, c *Case, o Object) (Answer, error)

// Explain implements Explainer.
func (f ExplainerFunc) Explain(ctx context.Context, c *Case, o Object) (Answer, error) {
	return f(ctx, c, o)
}

// GroupKind names a kind without its version.
type GroupKind struct{ Group, Kind string }

// Explainers are those of all subjects, by kind. Other explains objects of every other kind.
type Explainers struct {
	Kinds map[GroupKind]Explainer
	Other Explainer
}

// maxDepth is how many explainers may ask each other: CronJob, Job, pod, claim, class, and some more.
const maxDepth = 8

// Case is one question with what its explainers share. Use it from one goroutine.
type Case struct {
	*World
	// Now is when the question was asked; explainers read no clock.
	Now        time.Time
	explainers Explainers
	asked      []Object // those whose explainers run, the outermost first
}

// NewCase returns a case for one question.
func NewCase(w *World, now time.Time, e Explainers) *Case {
	return &Case{World: w, Now: now, explainers: e}
}

// Explain answers why o is as it is. What could not be read on the way is in the answer's Unseen. A circle (a pod that
// waits for a node that waits for the pod) ends with an empty answer.
func (c *Case) Explain(ctx context.Context, o Object) (Answer, error) {
	for _, asked := range c.asked {
		if asked.Group == o.Group && asked.Kind == o.Kind && asked.Namespace == o.Namespace && asked.Name == o.Name {
			return Answer{Subject: o}, nil
		}
	}
	if len(c.asked) == maxDepth {
		return Answer{Subject: o}, nil
	}
	c.asked = append(c.asked, o)
	defer func() { c.asked = c.asked[:len(c.asked)-1] }()
	e := c.explainers.Kinds[GroupKind{o.Group, o.Kind}]
	if e == nil {
		e = c.explainers.Other
	}
	a, err := e.Explain(ctx, c, o)
	if err != nil {
		return Answer{}, err
	}
	if len(c.asked) == 1 {
		a = c.Finish(a)
	}
	return a, nil
}

// Nested reports whether the explainer that runs was asked by another one, which wants to know what is wrong.
func (c *Case) Nested() bool { return len(c.asked) > 1 }

// Finish completes the answer to a question: it says what could not be read.
func (c *Case) Finish(a Answer) Answer {
	a.Unseen = c.unseen.sentences()
	if a.Causes == nil {
		a.Causes = []Cause{} // a list in JSON, too
	}
	return a
}

// Causes returns why o is as it is, for the Because of a cause; nil if it is well, or if nothing is known.
func (c *Case) Causes(ctx context.Context, o Object) ([]Cause, error) {
	a, err := c.Explain(ctx, o)
	if err != nil || a.Well {
		return nil, err
	}
	return a.Causes, nil
}
