package rows

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

// keepUnnamedImages lets an object that was stored with a volume of an image without a name keep such volumes: earlier
// versions of the API let templates of pods leave the name out.
func keepUnnamedImages(row *resources.Row) {
	validate := row.Strategy.ValidateUpdate
	if _, path := podSpec(row.New()); path == nil || validate == nil {
		return
	}
	row.Strategy.ValidateUpdate = func(obj, old runtime.Object) (field.ErrorList, []string) {
		errs, kept := validate(obj, old)
		was, path := podSpec(old)
		if was == nil || !slices.ContainsFunc(was.Volumes, unnamedImage) {
			return errs, kept
		}
		within := path.Child("volumes").String()
		return slices.DeleteFunc(errs, func(e *field.Error) bool {
			return e.Type == field.ErrorTypeRequired && strings.HasPrefix(e.Field, within) &&
				strings.HasSuffix(e.Field, "].image.reference")
		}), kept
	}
}

func unnamedImage(v corev1.Volume) bool { return v.Image != nil && v.Image.Reference == "" }
