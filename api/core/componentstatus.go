package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

func componentStatusRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ComponentStatus"), Resource: "componentstatuses",
		Singular:   "componentstatus",
		ShortNames: []string{"cs"},
		New:        resources.Make[corev1.ComponentStatus],
		NotStored:  true,
		Observed:   true,
		Deprecated: "v1 ComponentStatus is deprecated in v1.19+",
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Status", "Status of the component conditions"),
			resources.Column("Message", "Message of the component conditions"),
			resources.Column("Error", "Error of the component conditions"),
		},
		Cells: resources.Cells(func(c *corev1.ComponentStatus, _ time.Time) []any {
			status, message, problem := "Unknown", "", ""
			for _, cond := range c.Conditions {
				if cond.Type != corev1.ComponentHealthy {
					continue
				}
				if status = "Unhealthy"; cond.Status == corev1.ConditionTrue {
					status = "Healthy"
				}
				message, problem = cond.Message, cond.Error
				break
			}
			return []any{c.Name, status, message, problem}
		}),
	}
}
