package cp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// block is how many zeros in a row, in bytes, become a hole.
const block = 4096

// sparse writes to a file and leaves holes where blocks are zero. With a few bytes an archive can say that a file has
// terabytes of zeros, and would fill the disk. Other files than regular ones, such as pipes, get every byte.
type sparse struct {
	f *os.File
	// size is how much was written, holes included.
	size int64
}

// copyInto copies r to f.
func copyInto(f *os.File, r io.Reader) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		_, err := io.Copy(f, r)
		return err
	}
	s := &sparse{f: f}
	_, err = io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{r}, make([]byte, 16*block))
	return errors.Join(err, f.Truncate(s.size)) // the file may end in a hole
}

// Write implements io.Writer.
func (s *sparse) Write(p []byte) (int, error) {
	var zeros [block]byte
	done := 0
	for done < len(p) {
		part := p[done:min(done+block, len(p))]
		if !bytes.Equal(part, zeros[:len(part)]) {
			if _, err := s.f.WriteAt(part, s.size); err != nil {
				return done, fmt.Errorf("write %s: %w", s.f.Name(), err)
			}
		}
		done += len(part)
		s.size += int64(len(part))
	}
	return done, nil
}
