package console

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
)

// maxAnswer is the most that one answer of the API server may have, in bytes: a page of a list, an object, the end of a
// log. The browser holds all of it. Answers that go on, watches and logs that are followed, are read line by line and
// have no such bound.
const maxAnswer = 64 << 20

// errTooLarge ends an answer that has more.
var errTooLarge = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)

// goesOn reports whether a request is for an answer without an end.
func goesOn(u *url.URL) bool {
	q := u.Query()
	return slices.ContainsFunc([]string{"watch", "follow"}, func(name string) bool {
		v := q.Get(name)
		return q.Has(name) && v != "0" && v != "false"
	})
}

// bounded lets at most maxAnswer bytes of an answer through. One that says at once that it is larger is an error, any
// other breaks off, which a browser tells from an end.
func bounded(r *http.Response) error {
	if r.ContentLength > maxAnswer {
		return errTooLarge
	}
	r.Body = &boundedBody{ReadCloser: r.Body, left: maxAnswer}
	return nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	// One byte more than is left shows whether there is more.
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n + int(b.left), errTooLarge
	}
	return n, err
}

// tooLarge reports whether an answer was refused for its size.
func tooLarge(err error) bool { return errors.Is(err, errTooLarge) }
