package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/write"
)

// Reopen is an error of save that the user can fix: the editor opens again with Reasons above the object. Invalid says
// so on the error stream, too.
type Reopen struct {
	Reasons []string
	Invalid bool
}

func (r *Reopen) Error() string { return fmt.Sprint(r.Reasons) }

// Refused is an error of save that no other edit mends: the object is gone, or the server refuses for a reason outside
// of it, such as a conflict. What was edited is kept in its file.
type Refused struct {
	Said string
	Gone bool
}

func (r *Refused) Error() string { return r.Said }

// refusals are those of several objects.
type refusals []*Refused

func (r refusals) Error() string { return r[0].Said }

// tell says what was refused, and what can be done with the file.
func (r refusals) tell(w io.Writer, path string) {
	retry := false
	for _, one := range r {
		fmt.Fprintf(w, "error: %s\n", one.Said)
		retry = retry || !one.Gone
	}
	if retry {
		fmt.Fprintf(w, "You can run `kubectl replace -f %s` to try this update again.\n", path)
		return
	}
	fmt.Fprintf(w, "The edits you made on deleted resources have been saved to %q\n", path)
}

// Objects is the write.Editor of the user's editor.
func Objects(ctx context.Context, streams cli.IOStreams, s write.EditSession,
	save func(*unstructured.Unstructured) error) error {
	original, err := render(s, s.Objects)
	if err != nil {
		return err
	}
	body, before := original, original
	var reasons []string
	for {
		saved, path, err := open(ctx, streams, s, append([]byte(header(reasons)), body...))
		if err != nil {
			os.Remove(path)
			return err
		}
		switch {
		case len(reasons) > 0 && same(saved, before):
			return keep(streams, path, errors.New("Edit cancelled, no valid changes were saved."))
		case same(saved, original):
			os.Remove(path)
			fmt.Fprintln(streams.ErrOut, "Edit cancelled, no changes made.")
			return nil
		}
		failed, err := take(s, saved, save)
		if refused := (refusals)(nil); errors.As(err, &refused) {
			refused.tell(streams.ErrOut, path)
			return cli.Silent()
		}
		if again := (*Reopen)(nil); errors.As(err, &again) {
			os.Remove(path)
			if again.Invalid {
				fmt.Fprintf(streams.ErrOut, "error: %s is invalid\n", s.What)
			}
			reasons, before = again.Reasons, saved
			body = withoutHeader(saved)
			if len(failed) > 0 { // what could be saved is not edited again
				if body, err = render(s, failed); err != nil {
					return err
				}
				before = body
			}
			continue
		} else if err != nil {
			return keep(streams, path, err)
		}
		return os.Remove(path)
	}
}

// render writes the objects as they are edited.
func render(s write.EditSession, objects []*unstructured.Unstructured) ([]byte, error) {
	shown := objects[0]
	if len(objects) > 1 {
		items := make([]any, len(objects))
		for i, o := range objects {
			items[i] = o.Object
		}
		shown = &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}}
	}
	var out bytes.Buffer
	show := map[string]printers.Func{"": printers.YAML, "yaml": printers.YAML, "json": printers.JSON,
		"kyaml": printers.KYAML}[s.Format]
	err := show(shown, &out)
	if s.Windows {
		return bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n")), err
	}
	return out.Bytes(), err
}

// take decodes what was saved and hands each object to save. If the user can fix what is wrong with some, those are
// returned.
func take(s write.EditSession, edited []byte,
	save func(*unstructured.Unstructured) error) ([]*unstructured.Unstructured, error) {
	objects, err := decode(edited)
	if err != nil && !s.Unchecked {
		return nil, &Reopen{Reasons: []string{s.What + " was not valid:",
			`* <nil>: Invalid value: "The edited file failed validation": ` + err.Error()}, Invalid: true}
	}
	if err != nil {
		return nil, err
	}
	var failed []*unstructured.Unstructured
	var errs []error
	var refused refusals
	all := &Reopen{}
	for _, o := range objects {
		err := save(o)
		again, no := (*Reopen)(nil), (*Refused)(nil)
		switch {
		case errors.As(err, &no):
			refused = append(refused, no)
		case errors.As(err, &again):
			failed = append(failed, o)
			all.Reasons = append(all.Reasons, again.Reasons...)
			all.Invalid = all.Invalid || again.Invalid
		case err != nil:
			errs = append(errs, err)
		}
	}
	if len(refused) > 0 {
		return nil, refused
	}
	if len(failed) > 0 {
		return failed, all
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, utilerrors.NewAggregate(errs)
}

func decode(edited []byte) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON(edited)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if string(data) == "null" {
		return nil, errors.New("EOF")
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	var out []*unstructured.Unstructured
	err = u.EachListItem(func(o runtime.Object) error {
		out = append(out, o.(*unstructured.Unstructured))
		return nil
	})
	return out, err
}

// keep says where the changes are that could not be saved.
func keep(streams cli.IOStreams, path string, err error) error {
	if path != "" {
		fmt.Fprintf(streams.ErrOut, "A copy of your changes has been stored to %q\n", path)
	}
	return err
}
