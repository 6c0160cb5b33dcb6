// Package batch defines the kinds of the API group batch (v1), Job and CronJob: their rows, defaults,
// validation, strategies and table columns, as pure functions. The rules of their pod templates are package podspec's.
package batch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

// Rows returns the resources of the group.
func Rows() []resources.Row { return []resources.Row{cronJobRow(), jobRow()} }

// templateColumns are the wide columns of both kinds: of the pods' template, and the selector.
func templateColumns(selector string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		resources.Wide(resources.Column("Containers", "Names of each container in the template.")),
		resources.Wide(resources.Column("Images", "Images referenced by each container in the template.")),
		resources.Wide(resources.Column("Selector", selector)),
	}
}

func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}
