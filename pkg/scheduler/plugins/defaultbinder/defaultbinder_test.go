package defaultbinder

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
)

type binder func(pod *corev1.Pod, node string) error

func (b binder) Bind(_ context.Context, pod *corev1.Pod, node string) error { return b(pod, node) }

func TestBindKeepsTheServersError(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, answer := range []error{nil, refused} {
		var bound string
		p := Plugin{Client: binder(func(pod *corev1.Pod, node string) error {
			bound = pod.Name + " to " + node
			return answer
		})}
		st := p.Bind(t.Context(), nil, model.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}), "n1")
		if bound != "p to n1" || st.IsSuccess() != (answer == nil) || !errors.Is(st.AsError(), answer) {
			t.Errorf("answer %v: bound %s, %+v", answer, bound, st)
		}
	}
}
