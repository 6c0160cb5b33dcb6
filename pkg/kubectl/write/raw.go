package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"bonsai/pkg/kubectl/resource"
)

// Raw is --raw: a path of the server to which a file is sent as it is. The zero value sends nothing.
type Raw string

// Validate judges the flag together with the others; others are flags that do not go with it, by name, and whether they
// are set.
func (r Raw) Validate(f *Flags, files resource.Files, others map[string]bool) error {
	if r == "" {
		return nil
	}
	for name, set := range others {
		if set {
			return fmt.Errorf("--raw and %s are mutually exclusive", name)
		}
	}
	if f.Print.Output != "" {
		return errors.New("--raw and --output are mutually exclusive")
	}
	if len(files.Names) != 1 || strings.HasPrefix(files.Names[0], "http://") ||
		strings.HasPrefix(files.Names[0], "https://") {
		return errors.New("--raw can only use a single local file or stdin")
	}
	if _, err := url.ParseRequestURI(string(r)); err != nil {
		return fmt.Errorf("--raw must be a valid URL path: %w", err)
	}
	return nil
}

// Send sends the file and shows the answer as it is.
func (r Raw) Send(ctx context.Context, b *Base, verb string, files resource.Files) error {
	in := b.In
	if name := files.Names[0]; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", files.Names[0], err)
	}
	result := b.Client.REST.Verb(verb).RequestURI(string(r)).SetHeader("Content-Type", resource.JSON).Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	answer, err := result.Raw()
	if err != nil {
		return err
	}
	_, err = b.Raw().Out.Write(answer)
	return err
}
