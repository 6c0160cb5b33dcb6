package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestReport(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")
	for name, c := range map[string]struct {
		err  error
		want string
		code int
	}{
		"nothing":   {nil, "", 0},
		"plain":     {errors.New("boom"), "error: boom\n", 1},
		"not found": {notFound, "Error from server (NotFound): pods \"x\" not found\n", 1},
		"wrapped": {fmt.Errorf("error when creating \"f\": %w", notFound),
			"Error from server (NotFound): error when creating \"f\": pods \"x\" not found\n", 1},
		"one of an aggregate": {utilerrors.NewAggregate([]error{errors.New("a")}), "error: a\n", 1},
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x",
			field.ErrorList{field.Required(field.NewPath("spec"), "needed")}),
			"The Pod \"x\" is invalid: spec: Required value: needed\n", 1},
		"refused": {&url.Error{Op: "Get", URL: "http://h:1/api", Err: syscall.ECONNREFUSED},
			"The connection to the server h:1 was refused - did you specify the right host or port?\n", 1},
		"exit":   {&ExitError{Code: 3, Err: errors.New("x")}, "error: x\n", 3},
		"silent": {Silent(), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if code := Report(&out, c.err); code != c.code || out.String() != c.want {
				t.Errorf("got %d %q, want %d %q", code, out.String(), c.code, c.want)
			}
		})
	}
}
