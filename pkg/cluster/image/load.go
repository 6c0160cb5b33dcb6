package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/distribution/reference"
)

// localStore is a place on this machine that may have an image, with the command that writes the image as an archive.
type localStore struct {
	name string
	argv []string
}

// localStores returns the places that may have an image, in the order in which they are asked. Docker comes first,
// where users build. Of containerd's namespaces, default is that of ctr and k8s.io that of the CRI.
func localStores(image reference.Named) []localStore {
	stores := []localStore{{"Docker", []string{"docker", "save", reference.FamiliarString(image)}}}
	for _, namespace := range []string{"default", "k8s.io"} {
		stores = append(stores, localStore{"containerd's namespace " + namespace,
			[]string{"ctr", "--namespace", namespace, "images", "export", "-", image.String()}})
	}
	return stores
}

// loadLocal imports an image that one of this machine's own stores has, and returns its name.
func (s Stores) loadLocal(ctx context.Context, name string) ([]string, error) {
	image, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, fmt.Errorf("is no file, and no image's name either: %w", err)
	}
	var problems []error
	for _, store := range localStores(image) {
		if _, err := exec.LookPath(store.argv[0]); err != nil {
			problems = append(problems, fmt.Errorf("%s: there is no program %s", store.name, store.argv[0]))
			continue
		}
		names, found, err := s.loadFrom(ctx, store)
		if found {
			return names, err
		}
		problems = append(problems, fmt.Errorf("%s: %w", store.name, err))
	}
	return nil, fmt.Errorf("is no file, and no image that this machine has: %w", errors.Join(problems...))
}

// loadFrom imports what a store writes. found is false if it writes no image; err is then the store's own message.
//
// The store's program runs while LoadArchive reads its output through a pipe. LoadArchive copies a stream into Spool
// first, so no node imports half an archive.
func (s Stores) loadFrom(ctx context.Context, store localStore) (names []string, found bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, store.argv[0], store.argv[1:]...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false, err
	}
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	names, err = s.LoadArchive(ctx, "-", archive)
	if err != nil {
		cancel() // the store would block: nothing reads the rest of its output
	}
	// A store without the image ends with an error of its own and an empty archive. What the store says explains
	// more than the error of LoadArchive.
	if ended := cmd.Wait(); ended != nil && problem.Len() > 0 {
		return nil, false, errors.New(strings.TrimSpace(problem.String()))
	}
	return names, true, err
}
