package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

// Reopen is an error of save that the user can fix: the editor opens again with Reasons above the object. Invalid says so
// on the error stream, too.
type Reopen struct {
	Reasons []string
	Invalid bool
}

func (r *Reopen) Error() string { return fmt.Sprint(r.Reasons) }

// session lets the user edit obj, which what names, until save takes what was made of it. It returns nil without a call of save if nothing was
// changed or the file was emptied, and says so. Changes that could not be saved are left in a file that the message names.
func session(ctx context.Context, streams cli.IOStreams, what string, obj *unstructured.Unstructured, save func(*unstructured.Unstructured) error) error {
	original, err := printers.Document(obj.Object)
	if err != nil {
		return err
	}
	body, before := original, original
	var reasons []string
	for {
		saved, path, err := open(ctx, streams, append([]byte(header(reasons)), body...))
		if err != nil {
			os.Remove(path)
			return err
		}
		edited := withoutComments(saved)
		switch {
		case len(reasons) > 0 && bytes.Equal(edited, withoutComments(before)):
			return keep(streams, path, errors.New("Edit cancelled, no valid changes were saved."))
		case bytes.Equal(edited, bytes.TrimSpace(withoutComments(original))):
			os.Remove(path)
			fmt.Fprintln(streams.ErrOut, "Edit cancelled, no changes made.")
			return nil
		case len(edited) == 0:
			os.Remove(path)
			fmt.Fprintln(streams.ErrOut, "Edit cancelled, saved file was empty.")
			return nil
		}
		var again *Reopen
		if err := take(edited, save); errors.As(err, &again) {
			os.Remove(path)
			if again.Invalid {
				fmt.Fprintf(streams.ErrOut, "error: %s is invalid\n", what)
			}
			reasons, before = again.Reasons, saved
			body = append(append([]byte{}, edited...), '\n')
			continue
		} else if err != nil {
			return keep(streams, path, err)
		}
		return os.Remove(path)
	}
}

// take decodes what was saved and hands it to save.
func take(edited []byte, save func(*unstructured.Unstructured) error) error {
	data, err := yaml.YAMLToJSON(edited)
	if err != nil {
		return &Reopen{Reasons: []string{"The edited file had a syntax error: " + err.Error()}, Invalid: true}
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return &Reopen{Reasons: []string{"The edited file had a syntax error: " + err.Error()}, Invalid: true}
	}
	return save(u)
}

// keep says where the changes are that could not be saved.
func keep(streams cli.IOStreams, path string, err error) error {
	if path != "" {
		fmt.Fprintf(streams.ErrOut, "A copy of your changes has been stored to %q\n", path)
	}
	return err
}
