package debug

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/write"
)

// Validate refuses flags that do not go together, and reads --custom.
func (o *Options) Validate() error {
	if err := o.validateCopy(); err != nil {
		return err
	}
	if err := o.validateImages(); err != nil {
		return err
	}
	switch corev1.PullPolicy(o.wish.pull) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return fmt.Errorf("invalid image pull policy: %s", o.wish.pull)
	}
	switch {
	case len(o.names) == 0 && o.files.Empty():
		return errors.New("NAME or filename is required for debug")
	case len(o.names) > 0 && !o.files.Empty():
		return errors.New("resource/name arguments cannot be provided when a path is specified")
	case o.wish.target != "" && o.copyTo != "":
		return errors.New("--target is incompatible with --copy-to. Use --share-processes instead.")
	case o.wish.tty && !o.wish.stdin:
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	case !slices.Contains([]string{general, baseline, restricted, netadmin, sysadmin, legacy}, o.profile):
		return fmt.Errorf("unknown profile: %s", o.profile)
	case o.custom == "":
		return nil
	}
	var err error
	o.wish.partial, err = readCustom(o.custom)
	return err
}

func (o *Options) validateCopy() error {
	w := &o.wish
	if o.copyTo != "" {
		switch {
		case w.image == "" && len(w.images) == 0 && len(w.args) == 0:
			return errors.New("you must specify --image, --set-image or command arguments.")
		case len(w.args) > 0 && w.container == "" && w.image == "":
			return errors.New("you must specify an existing container or a new image when specifying args.")
		}
		return nil
	}
	switch {
	case len(w.images) > 0:
		return errors.New("--set-image may only be used with --copy-to.")
	case w.image == "":
		return errors.New("you must specify --image when not using --copy-to.")
	case o.replace:
		return errors.New("--replace may only be used with --copy-to.")
	case w.sameNode:
		return errors.New("--same-node may only be used with --copy-to.")
	}
	return nil
}

func (o *Options) validateImages() error {
	if image := o.wish.image; image != "" {
		if err := write.CheckImage(image); err != nil {
			return fmt.Errorf("invalid image name %q: %w", image, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.wish.images)) {
		image := o.wish.images[name]
		if err := write.CheckImage(image); err != nil {
			return fmt.Errorf("invalid image name %q for container %q: %w", image, name, err)
		}
	}
	return nil
}

// readCustom reads the file of --custom: parts of a container in JSON or YAML.
func readCustom(path string) (*corev1.Container, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("must pass a container spec json file for custom profile: %w", err)
	}
	c := &corev1.Container{}
	if err := yaml.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%s does not contain a valid container spec: %w", path, err)
	}
	if c.Name != "" || len(c.Command) > 0 || c.Image != "" || c.Lifecycle != nil || len(c.VolumeDevices) > 0 {
		return nil, errors.New("name, command, image, lifecycle and volume devices are not modifiable via custom profile")
	}
	return c, nil
}
