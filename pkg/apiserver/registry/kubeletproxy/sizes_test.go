package kubeletproxy

import (
	"io"
	"strings"
	"testing"
)

// endless repeats a text, and counts its bytes.
type endless struct {
	text string
	sent int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.sent += n
	return n, nil
}

// TestSizes: sizes of a terminal arrive; one without an end ends the session, and is not read to where memory ends.
func TestSizes(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	done := make(chan struct{})
	defer close(done)
	rest := &endless{text: strings.Repeat("x", 100)}
	s := newSizes(io.MultiReader(strings.NewReader(`{"Width":80,"Height":24} {"Width":1,"x":"`), rest), done,
		func() { close(ended) })
	if size := s.Next(); size == nil || size.Width != 80 || size.Height != 24 {
		t.Errorf("the first size is %+v", size)
	}
	if size := s.Next(); size != nil {
		t.Errorf("the second size is %+v", size)
	}
	<-ended
	if rest.sent > 2*maxSize {
		t.Errorf("read %d bytes of a size", rest.sent)
	}
	// A client that only stops to send sizes goes on.
	s = newSizes(strings.NewReader(`{"Width":80,"Height":24}`), done, func() { t.Error("the session ended") })
	for s.Next() != nil {
	}
}
