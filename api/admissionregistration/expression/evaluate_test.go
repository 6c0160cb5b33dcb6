package expression

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

// A hundred patterns over 100 KB take minutes, and one that has begun is looked at to its end: none may begin when the
// request's time is over, neither of a policy's expressions nor of its variables.
func TestNothingBeginsLate(t *testing.T) {
	t.Parallel()
	p, err := new(Compiler).Compile(`object.x.matches("^a*$")`, Scope{}, cel.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func(ctx context.Context) (bool, Budget, error) {
		budget := Budget(10_000_000)
		out, err := p.Evaluate(ctx,
			NewEvaluation(&Variables{Object: map[string]any{"x": strings.Repeat("a", 100_000)}}), &budget)
		return err == nil && Holds(out), budget, err
	}
	if ok, left, err := evaluate(t.Context()); !ok || left == 10_000_000 {
		t.Errorf("in time: %v, %d left, %v", ok, left, err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, left, err := evaluate(late); !errors.Is(err, context.Canceled) || left != 10_000_000 {
		t.Errorf("late: %d left, %v", left, err)
	}
}
