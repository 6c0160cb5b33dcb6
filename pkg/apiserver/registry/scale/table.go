package scale

import (
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
)

// Columns implements registry.ReadWriter. Unlike those of most kinds, the name has no format.
func (r *REST) Columns() []metav1.TableColumnDefinition {
	replicas := func(name, description string) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
	}
	return []metav1.TableColumnDefinition{
		resources.Column("Name", metav1.ObjectMeta{}.SwaggerDoc()["name"]),
		replicas("Desired", autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]),
		replicas("Available", autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]),
		resources.AgeColumn(),
	}
}

// Cells implements registry.ReadWriter.
func (r *REST) Cells(obj runtime.Object, now time.Time) []any {
	s := obj.(*autoscalingv1.Scale)
	return []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), resources.Age(s.CreationTimestamp, now)}
}
