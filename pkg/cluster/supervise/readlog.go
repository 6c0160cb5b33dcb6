package supervise

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"time"

	"bonsai/pkg/cluster/host"
)

// LogOptions say which part of a log is printed.
type LogOptions struct {
	Follow bool
	// Tail is the number of last lines to print, or all if it is negative. Since leaves out older lines.
	Tail  int
	Since time.Time
}

// ReadLog prints the log at path, from its oldest file on, as far as o includes it. With o.Follow it then prints what
// is added, also when the log continues in the next file, until ctx ends.
//
// Any process may call it while the supervisor writes: it takes no lock, and reads what the files have. A file that was
// removed by a rotation meanwhile stays readable, since it is open.
func ReadLog(ctx context.Context, path string, o LogOptions, out io.Writer) error {
	files, err := openLogs(path)
	if err != nil {
		return err
	}
	current := files[0]
	defer func() { current.Close() }()
	var all []io.Reader
	for _, f := range slices.Backward(files) {
		all = append(all, f)
	}
	err = o.print(io.MultiReader(all...), out)
	for _, f := range files[1:] {
		f.Close()
	}
	if err != nil || !o.Follow {
		return err
	}
	const lookEvery = 100 * time.Millisecond
	return host.Poll(ctx, lookEvery, func() (bool, error) {
		next, err := successor(current, path)
		// The rest of the current file is read after the look for its successor: once there is one, the current file no
		// longer grows, and so nothing is missed.
		if _, err := io.Copy(out, current); err != nil {
			return false, err
		}
		if next != nil {
			current.Close()
			current = next
			_, err = io.Copy(out, current)
		}
		return false, err
	})
}

// print copies the lines that o includes. A tail holds at most twice its lines in memory, whatever the size of the log.
func (o LogOptions) print(in io.Reader, out io.Writer) error {
	if o.Tail < 0 && o.Since.IsZero() {
		_, err := io.Copy(out, in)
		return err
	}
	var last [][]byte // the newest lines if only some are wanted, 2*o.Tail at most
	young := o.Since.IsZero()
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadBytes('\n')
		if at, ok := lineTime(line, o.Since); ok && !young {
			young = !at.Before(o.Since) // a line without a time belongs to the one before
		}
		switch {
		case len(line) == 0 || !young || o.Tail == 0:
		case o.Tail < 0:
			if _, err := out.Write(line); err != nil {
				return err
			}
		default:
			if last = append(last, line); len(last) == 2*o.Tail {
				last = slices.Clone(last[o.Tail:])
			}
		}
		if err == io.EOF {
			_, err := out.Write(bytes.Join(last[max(0, len(last)-max(0, o.Tail)):], nil))
			return err
		}
		if err != nil {
			return err
		}
	}
}

// openLogs opens the current file of a log and then the old ones, youngest first. A rotation meanwhile may show a
// file under two names; it is opened once.
func openLogs(path string) ([]*os.File, error) {
	var files []*os.File
	// The youngest comes first: a rotation between two openings moves a file to the next number, where it shows a
	// second time. In the other order it would be missed.
	for i := 0; i <= oldLogs; i++ {
		f, err := os.Open(oldLog(path, i))
		if os.IsNotExist(err) && i > 0 {
			break
		}
		if err == nil && len(files) > 0 && sameFile(f, files[len(files)-1]) {
			f.Close()
			continue
		}
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// successor opens the file that has taken the place of an open log, or returns nil if none has.
func successor(current *os.File, path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, host.IgnoreMissing(err) // between two steps of a rotation, or the cluster is gone
	}
	if sameFile(f, current) {
		return nil, f.Close()
	}
	return f, nil
}

// sameFile reports whether two open files are one.
func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}
