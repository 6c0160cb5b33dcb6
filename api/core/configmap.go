package core

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func configMapRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", Singular: "configmap",
		Namespaced:  true,
		ShortNames:  []string{"cm"},
		StoragePath: "configmaps",
		New:         resources.Make[corev1.ConfigMap],
		Strategy: resources.Typed[*corev1.ConfigMap]{
			Validate:       validateConfigMap,
			ValidateUpdate: validateConfigMapUpdate,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Data", corev1.ConfigMap{}.SwaggerDoc()["data"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *corev1.ConfigMap, now time.Time) []any {
			return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

// maxConfigMapSize is the most bytes that all values of a configmap may have together.
const maxConfigMapSize = 1 << 20

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for k, v := range c.Data {
		errs = append(errs, validate.Invalid(field.NewPath("data").Key(k), k, validation.IsConfigMapKey(k))...)
		if _, both := c.BinaryData[k]; both {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(k), k,
				"duplicate of key present in binaryData"))
		}
		total += len(v)
	}
	for k, v := range c.BinaryData {
		errs = append(errs, validate.Invalid(field.NewPath("binaryData").Key(k), k, validation.IsConfigMapKey(k))...)
		total += len(v)
	}
	if total > maxConfigMapSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxConfigMapSize))
	}
	return errs
}

// validateConfigMapUpdate: what is marked immutable stays, and stays marked.
func validateConfigMapUpdate(obj, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if isTrue(old.Immutable) {
		if !isTrue(obj.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableField("immutable")))
		}
		if !apiequality.Semantic.DeepEqual(obj.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableField("immutable")))
		}
		// for which, as in Kubernetes, {} is not the same as nothing
		if !reflect.DeepEqual(obj.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableField("immutable")))
		}
	}
	return append(errs, validateConfigMap(obj)...)
}

func isTrue(b *bool) bool { return b != nil && *b }

func immutableField(name string) string {
	return fmt.Sprintf("field is immutable when `%s` is set", name)
}
