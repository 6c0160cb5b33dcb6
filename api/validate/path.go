package validate

import (
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LocalPath checks a relative path that stays below its root.
func LocalPath(p string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if filepath.IsAbs(p) {
		errs = append(errs, field.Invalid(path, p, "must be a relative path"))
	}
	return append(errs, NoBacksteps(p, path)...)
}

// NoBacksteps checks that no part of a path is "..", which could lead out of its root.
func NoBacksteps(p string, path *field.Path) field.ErrorList {
	if sets.New(strings.Split(filepath.ToSlash(p), "/")...).Has("..") {
		return field.ErrorList{field.Invalid(path, p, "must not contain '..'")}
	}
	return nil
}
