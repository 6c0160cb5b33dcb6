package cri

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Image returns the image of that name or id, nil if it is not on the node.
func (c *Client) Image(ctx context.Context, name string) (*runtime.Image, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil {
		return nil, fmt.Errorf("status of image %q: %w", name, err)
	}
	if r.Image == nil {
		return nil, nil
	}
	img := image(r.Image)
	return &img, nil
}

// Images lists all images.
func (c *Client) Images(ctx context.Context) ([]runtime.Image, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	out := make([]runtime.Image, 0, len(r.Images))
	for _, i := range r.Images {
		out = append(out, image(i))
	}
	return out, nil
}

func image(i *runtimeapi.Image) runtime.Image {
	out := runtime.Image{ID: i.Id, RepoTags: i.RepoTags, RepoDigests: i.RepoDigests, Size: i.Size, Username: i.Username,
		Pinned: i.Pinned}
	if i.Uid != nil {
		v := i.Uid.Value
		out.UID = &v
	}
	return out
}

// Pull fetches an image for a pod and returns its local id. It takes as long as ctx allows. Its errors carry the
// runtime's words.
func (c *Client) Pull(ctx context.Context, name string, auth *runtime.Auth, pod *corev1.Pod) (string, error) {
	q := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}}
	if pod != nil {
		q.SandboxConfig = sandboxConfig(pod, runtime.SandboxOptions{}, c.containers)
	}
	if auth != nil {
		q.Auth = &runtimeapi.AuthConfig{Username: auth.Username, Password: auth.Password, Auth: auth.Auth,
			ServerAddress: auth.ServerAddress,
			IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken}
	}
	r, err := c.images.PullImage(ctx, q)
	if err != nil {
		return "", &pullError{image: name, err: err}
	}
	return r.ImageRef, nil
}

// pullError is a failed pull; its text is the runtime's own.
type pullError struct {
	image string
	err   error
}

// Error returns what the runtime said.
func (e *pullError) Error() string { return Message(e.err) }

// Unwrap returns the gRPC error.
func (e *pullError) Unwrap() error { return e.err }

// RemoveImage removes an image; one that is gone is no error.
func (c *Client) RemoveImage(ctx context.Context, id string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: id}})
	if err != nil && !notFound(err) {
		return fmt.Errorf("remove image %s: %w", id, err)
	}
	return nil
}

// Filesystems returns where the runtime keeps images and writable layers.
func (c *Client) Filesystems(ctx context.Context) (runtime.Filesystems, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return runtime.Filesystems{}, fmt.Errorf("ask for the image file system: %w", err)
	}
	if len(r.ImageFilesystems) == 0 {
		return runtime.Filesystems{}, fmt.Errorf("the container runtime names no image file system")
	}
	return filesystems(r), nil
}

// filesystems converts the runtime's answer, which has at least one file system for images.
func filesystems(r *runtimeapi.ImageFsInfoResponse) runtime.Filesystems {
	images := r.ImageFilesystems[0]
	containers := images
	if len(r.ContainerFilesystems) > 0 { // older runtimes name none
		containers = r.ContainerFilesystems[0]
	}
	use := func(u *runtimeapi.FilesystemUsage) runtime.DiskUse {
		return runtime.DiskUse{Bytes: int64(u.GetUsedBytes().GetValue()), Inodes: int64(u.GetInodesUsed().GetValue())}
	}
	return runtime.Filesystems{Images: images.GetFsId().GetMountpoint(),
		Containers: containers.GetFsId().GetMountpoint(),
		ImagesUse:  use(images), ContainersUse: use(containers)}
}
