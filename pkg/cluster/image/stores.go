package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"

	"bonsai/pkg/durable"
)

// Stores are the image stores of the nodes of a running cluster: each node's containerd has its own.
type Stores struct {
	// Nodes are the names of the nodes.
	Nodes []string
	// PID returns the pid of a node's init process, whose mounts are the node's.
	PID func(ctx context.Context, node string) (int, error)
	// CTR is containerd's client on this machine. Socket is containerd's socket as a node sees it.
	CTR, Socket string
	// Spool is the directory for archives that must be unpacked into a file while they are loaded. It is on the file
	// system of the nodes' images.
	Spool string
}

// Load imports images into every node. A source is an archive of docker save or an OCI layout, possibly compressed by
// gzip; "-" is stdin. A source that is no file is the name of an image in this machine's Docker or containerd; a path
// that begins with / or . is always a file. The error names the source.
//
// Sources are loaded one after the other, and the first failure ends the work. Images that are loaded already stay on
// the nodes.
func (s Stores) Load(ctx context.Context, sources []string, stdin io.Reader, out io.Writer) error {
	for _, source := range sources {
		name := source
		var names []string
		var err error
		if source == "-" {
			name = "standard input"
			names, err = s.LoadArchive(ctx, source, stdin)
		} else if _, missing := os.Stat(source); missing == nil || strings.HasPrefix(source, "/") ||
			strings.HasPrefix(source, ".") {
			names, err = s.LoadArchive(ctx, source, nil)
		} else {
			names, err = s.loadLocal(ctx, source)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "%s: loaded %s\n", name, strings.Join(names, ", "))
	}
	return nil
}

// LoadArchive imports one archive into all nodes at the same time and returns the names of its images. A path of "-"
// stands for stdin.
//
// The archive is read as a whole before any node imports it. A node that fails does not stop the others, which may end
// up with the image.
func (s Stores) LoadArchive(ctx context.Context, path string, stdin io.Reader) ([]string, error) {
	file, err := s.plainFile(path, stdin)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	a, err := readArchive(file)
	if err != nil {
		return nil, err
	}
	if own := "linux/" + runtime.GOARCH; a.platform != "" && a.platform != own {
		return nil, fmt.Errorf("is for %s, and the nodes are %s", a.platform, own)
	}
	var nodes errgroup.Group
	for _, node := range s.Nodes {
		nodes.Go(func() error {
			// Opened again for each node, because a copy of the descriptor would share its offset. The file has no name
			// any more (plainFile).
			again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
			if err != nil {
				return err
			}
			defer again.Close()
			_, err = s.run(ctx, node, again, "images", "import", "-")
			return err
		})
	}
	if err := nodes.Wait(); err != nil {
		return a.names, err
	}
	// The nodes' images are on the file system of Spool, the data directory's. containerd does not wait for the disk.
	return a.names, durable.Flush(s.Spool)
}

// plainFile opens an archive as an uncompressed file. If the archive is compressed or comes from standard input,
// plainFile first writes it to a file in Spool, whose name it removes at once: the space is free again when the file is
// closed, however this process ends.
func (s Stores) plainFile(path string, stdin io.Reader) (_ *os.File, err error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, errors.Unwrap(err) // the caller's error has the archive's name
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil || info.IsDir() {
			return nil, errors.Join(err, errors.New("is a directory, not an archive"))
		}
		in = file
	}
	unpacked, err := plain(in)
	if err != nil {
		return nil, err
	}
	// A file that was not compressed needs no copy in Spool. It is opened again, because plain has read from it.
	if _, same := unpacked.(interface{ Peek(int) ([]byte, error) }); same && path != "-" {
		return os.Open(path)
	}
	spool, err := os.CreateTemp(s.Spool, "image-*")
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(spool, unpacked); errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("ends in the middle: was it copied whole?")
	}
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err = errors.Join(err, os.Remove(spool.Name())); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return spool, nil
}

// nodeImage is one name of an image as a node's containerd lists it.
type nodeImage struct{ name, digest, size string }

// run runs containerd's client in a node and returns what it prints. It enters the node's mounts alone: in them is the
// socket, and the archive comes by standard input. nsenter forks only for a PID namespace, so the end of ctx kills ctr
// itself. Only ctx bounds the time: an import may be large.
func (s Stores) run(ctx context.Context, node string, stdin io.Reader, args ...string) (string, error) {
	pid, err := s.PID(ctx, node)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "nsenter",
		append([]string{"-t", strconv.Itoa(pid), "-m", "--", s.CTR, "--address", s.Socket, "--namespace", "k8s.io"},
			args...)...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("node %s: %s", node, inWords(problem.String(), node))
	}
	return out.String(), nil
}

// inWords explains an error of ctr, with what to do, where that is known.
func inWords(problem, node string) string {
	text := strings.TrimSpace(problem)
	if i := strings.LastIndex(text, "ctr: "); i >= 0 {
		text = text[i+len("ctr: "):]
	}
	for mark, words := range map[string]string{
		"no space left on device": "its disk is full (bonsai image rm)",
		"connection refused":      "its containerd does not answer (bonsai logs " + node + "-containerd)",
		"deadline exceeded":       "its containerd does not answer in time (bonsai logs " + node + "-containerd)",
		"no match for platform":   "the image is not for this platform, linux/" + runtime.GOARCH,
	} {
		if strings.Contains(text, mark) {
			return words + ": " + text
		}
	}
	return text
}

// nodeImages lists the images of a node.
func (s Stores) nodeImages(ctx context.Context, node string) ([]nodeImage, error) {
	table, err := s.run(ctx, node, nil, "images", "list")
	if err != nil {
		return nil, err
	}
	return parseImages(table), nil
}

// parseImages reads ctr's table REF TYPE DIGEST SIZE PLATFORMS LABELS, where a size is a number and a unit.
func parseImages(table string) []nodeImage {
	var images []nodeImage
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] == "REF" {
			continue
		}
		images = append(images, nodeImage{f[0], f[2], f[3] + " " + f[4]})
	}
	return images
}

// isName reports whether it is a name, and not one of the references that containerd's CRI keeps beside a name:
// name@digest and the ID.
func (i nodeImage) isName() bool {
	return !strings.HasPrefix(i.name, "sha256:") && !strings.Contains(i.name, "@")
}

// Print prints the images, and which nodes have them.
func (s Stores) Print(ctx context.Context, out io.Writer) error {
	nodes := map[nodeImage][]string{}
	for _, node := range s.Nodes {
		images, err := s.nodeImages(ctx, node)
		if err != nil {
			return err
		}
		for _, i := range images {
			if i.isName() {
				nodes[i] = append(nodes[i], node)
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tDIGEST\tSIZE\tNODES")
	for _, i := range slices.SortedFunc(maps.Keys(nodes), func(a, b nodeImage) int {
		return strings.Compare(a.name+a.digest, b.name+b.digest)
	}) {
		const short = len("sha256:") + 12
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.name, i.digest[:min(len(i.digest), short)], i.size,
			strings.Join(nodes[i], ","))
	}
	return w.Flush()
}

// Remove removes images by name from every node. It refuses an image that a container has, running or ended, unless
// force is set.
//
// The first failure ends the work: nodes before it have lost the image, and later ones still have it.
func (s Stores) Remove(ctx context.Context, names []string, force bool, out io.Writer) error {
	for _, name := range names {
		full, err := reference.ParseDockerRef(name)
		if err != nil {
			return fmt.Errorf("%q is no image's name: %w", name, err)
		}
		on, err := s.removeImage(ctx, full.String(), force)
		if err != nil {
			return fmt.Errorf("%s: %w", full, err)
		}
		if len(on) == 0 {
			return fmt.Errorf("%s: no node has it (bonsai image list)", full)
		}
		fmt.Fprintf(out, "%s: removed from %s\n", full, strings.Join(on, ", "))
	}
	return nil
}

// removeImage removes an image from the nodes that have it, and returns those nodes.
func (s Stores) removeImage(ctx context.Context, name string, force bool) (on []string, err error) {
	for _, node := range s.Nodes {
		images, err := s.nodeImages(ctx, node)
		if err != nil {
			return on, err
		}
		refs := refsOf(images, name)
		if len(refs) == 0 {
			continue
		}
		if !force {
			containers, err := s.run(ctx, node, nil, "containers", "list")
			if err != nil {
				return on, err
			}
			if user := userOf(containers, refs); user != "" {
				return on, fmt.Errorf("container %s on node %s has it (--force removes it all the same)", user, node)
			}
		}
		if _, err := s.run(ctx, node, nil, append([]string{"images", "remove", "--sync"}, refs...)...); err != nil {
			return on, err
		}
		on = append(on, node)
	}
	return on, nil
}

// refsOf returns what to remove for a name: the name itself and, if the image has no other name, also containerd's
// references, which would keep the image on the disk.
func refsOf(images []nodeImage, name string) []string {
	i := slices.IndexFunc(images, func(i nodeImage) bool { return i.name == name })
	if i < 0 {
		return nil
	}
	refs := []string{name}
	for _, other := range images {
		if other.digest != images[i].digest || other.name == name {
			continue
		}
		if other.isName() {
			return []string{name}
		}
		refs = append(refs, other.name)
	}
	return refs
}

// userOf returns a container that has one of the references, from ctr's table CONTAINER IMAGE RUNTIME, or "".
func userOf(table string, refs []string) string {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 1 && slices.Contains(refs, f[1]) {
			return f[0]
		}
	}
	return ""
}
