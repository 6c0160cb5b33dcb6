package logs

import (
	"bytes"
	"errors"
	"io"
)

// chunk is the number of bytes that are read and written at once. A longer line is written in pieces of this size, so
// that a line without an end cannot fill the memory.
const chunk = 256 << 10

// lines copies r to w until r ends or fails. It writes what has arrived, up to the last end of a line in it, before it
// waits for more: a user who follows a log sees each line at once. Each line begins with head. A last line without an
// end is written as it is.
func lines(w io.Writer, r io.Reader, head string) error {
	in, held := make([]byte, chunk), 0 // held is how much of in begins a line that has no end yet
	l := liner{w: w, head: []byte(head), fresh: true}
	for {
		n, err := r.Read(in[held:])
		have := held + n
		end := bytes.LastIndexByte(in[held:have], '\n') + 1
		switch {
		case end > 0:
			end += held
		case err != nil || have == len(in):
			end = have
		}
		if e := l.write(in[:end]); e != nil {
			return e
		}
		held = copy(in, in[end:have])
		if err == nil {
			continue
		}
		if e := l.write(in[:held]); e != nil {
			return e
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// liner writes text with head before each line, in one write.
type liner struct {
	w    io.Writer
	head []byte
	// fresh says that what comes next begins a line.
	fresh bool
	out   []byte
}

func (l *liner) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if len(l.head) > 0 {
		l.out = l.out[:0]
		for rest := text; len(rest) > 0; {
			if l.fresh {
				l.out = append(l.out, l.head...)
			}
			end := bytes.IndexByte(rest, '\n') + 1
			if l.fresh = end > 0; !l.fresh {
				end = len(rest)
			}
			l.out = append(l.out, rest[:end]...)
			rest = rest[end:]
		}
		text = l.out
	}
	_, err := l.w.Write(text)
	return err
}
