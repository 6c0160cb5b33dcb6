package customresource

import (
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// conflict is why a definition does not get the names that it wants; the zero value is none.
type conflict struct{ reason, message string }

// taken are the names that the definitions of a group have.
type taken struct{ resources, kinds []string }

func takenBy(others []v1.CustomResourceDefinitionNames) taken {
	var t taken
	for _, n := range others {
		t.resources = append(t.resources, n.Plural, n.Singular)
		t.resources = append(t.resources, n.ShortNames...)
		t.kinds = append(t.kinds, n.Kind, n.ListKind)
	}
	return t
}

// accept returns the names that a definition has if it wants wanted, had accepted before and others of its group have
// theirs: each wanted one that nobody else has, and in place of one that is taken that of before. The conflict is the
// last one.
func accept(wanted, accepted v1.CustomResourceDefinitionNames,
	others []v1.CustomResourceDefinitionNames) (v1.CustomResourceDefinitionNames, conflict) {
	t := takenBy(others)
	out, why := accepted, conflict{}
	one := func(reason string, have *string, want string, used []string) {
		if err := free(want, *have, used); err != nil {
			why = conflict{reason, err.Error()}
			return
		}
		*have = want
	}
	one("PluralConflict", &out.Plural, wanted.Plural, t.resources)
	one("SingularConflict", &out.Singular, wanted.Singular, t.resources)
	var errs []error
	for _, short := range wanted.ShortNames {
		had := ""
		if slices.Contains(accepted.ShortNames, short) {
			had = short
		}
		if err := free(short, had, t.resources); err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		why = conflict{"ShortNamesConflict", err.Error()}
	} else {
		out.ShortNames = wanted.ShortNames
	}
	one("KindConflict", &out.Kind, wanted.Kind, t.kinds)
	one("ListKindConflict", &out.ListKind, wanted.ListKind, t.kinds)
	out.Categories = wanted.Categories
	return out, why
}

// free tells why a name cannot be had by who has had another one.
func free(want, had string, used []string) error {
	if want == "" || want == had || !slices.Contains(used, want) {
		return nil
	}
	return fmt.Errorf("%q is already in use", want)
}
