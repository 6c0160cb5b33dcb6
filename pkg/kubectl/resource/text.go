package resource

import (
	"io"
	"os"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// asUTF8 reads r as UTF-8, or as UTF-16 if a byte order mark says so, as editors on Windows write it. Bytes that are no
// text become the replacement character.
func asUTF8(r io.Reader) io.Reader {
	return transform.NewReader(r, unicode.BOMOverride(unicode.UTF8.NewDecoder()))
}

// openUTF8 opens a file for reading as asUTF8 does.
func openUTF8(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{asUTF8(f), f}, nil
}
